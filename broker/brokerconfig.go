package broker

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// settings is what a running broker knows of its configuration beside the values in force.
type settings struct {
	mu struct { // held during a change of the configuration
		sync.Mutex
		version body.DataVersion
		next    map[string]string // updated keys that count from the next start on
	}
}

// startKeys are keys that are only heeded at start: who the broker is, where its files lie and what form they
// have. An update of one is written down and shown, and changes nothing before the next start.
var startKeys = []string{
	"listenPort", "bindAddress", "brokerName", "brokerClusterName", "brokerId", "brokerIP1", "brokerIP2", "brokerRole",
	"haListenPort", "storePathRootDir", "storePathCommitLog", "storePathDLedgerCommitLog", "readOnlyCommitLogStorePaths",
	"mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue", "maxHashSlotNum", "maxIndexNum", "enableConsumeQueueExt",
	"mappedFileSizeConsumeQueueExt",
	"flushDiskType", "messageDelayLevel", "messageIndexEnable", "traceTopicEnable", "msgTraceTopicName",
	"flushConsumerOffsetInterval", "frameMaxLength",
}

// alwaysBlack are keys that no request may change, whatever configBlackList says.
var alwaysBlack = []string{"brokerConfigPath", "rocketmqHome", "configBlackList"}

// getBrokerConfig (26) is every key with its value, one a line; unknown keys of the configuration file too.
func (b *Broker) getBrokerConfig(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	b.settings.mu.Lock()
	defer b.settings.mu.Unlock()
	var text bytes.Buffer
	for _, kv := range b.config().Items() {
		if next, ok := b.settings.mu.next[kv.Key]; ok {
			kv.Value = next
		}
		if kv.Value == "" {
			continue // Java's null
		}
		text.WriteString(kv.Key + "=" + kv.Value + "\n")
	}
	version, err := compat.Marshal(&b.settings.mu.version)
	if err != nil {
		return nil, err
	}
	answer := c.Success(&header.GetBrokerConfigResponse{Version: string(version)})
	answer.Body = text.Bytes()
	return answer, nil
}

// updateBrokerConfig (25) changes keys on the running broker and in its configuration file. Unknown keys are
// ignored; a value that does not fit its key, or asks for what is not served, changes nothing and is refused,
// where the official broker says yes and ignores it.
func (b *Broker) updateBrokerConfig(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	if len(c.Command().Body) == 0 {
		return c.Success(nil), nil
	}
	props, err := compat.ParseProperties(c.Command().Body)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "string2Properties error")
	}
	b.settings.mu.Lock()
	defer b.settings.mu.Unlock()
	old := b.config()
	black := append(slices.Clone(alwaysBlack), strings.Split(old.ConfigBlackList, ";")...)
	for _, key := range props.Keys() {
		if slices.Contains(black, key) {
			return nil, protocol.Errorf(protocol.NoPermission, "Can not update config in black list.")
		}
	}
	wanted := *old // what the next start will find
	waiting := new(compat.Properties)
	for key, value := range b.settings.mu.next {
		waiting.Set(key, value)
	}
	if _, err := compat.BindProperties(waiting, &wanted); err != nil {
		return nil, err // has been bound before
	}
	unknown, err := compat.BindProperties(props, &wanted)
	if err == nil {
		wanted.complete()
		if err = wanted.Validate(); err == nil {
			err = b.checkChange(old, &wanted)
		}
	}
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "the configuration is left as it was: %v", err)
	}
	for _, kv := range compat.OddBooleans(props, &wanted) {
		b.log.Warn("a boolean that is neither true nor false; it is taken for false, as the official broker does", "key", kv.Key, "value", kv.Value)
	}
	changed, later := make(map[string]string), make(map[string]string)
	live := new(compat.Properties)
	for _, key := range props.Keys() {
		value, _ := props.Get(key)
		if slices.Contains(unknown, key) {
			continue
		}
		changed[key] = value
		if slices.Contains(startKeys, key) {
			later[key] = value
		} else {
			live.Set(key, value)
		}
	}
	if err := b.writeConfig(old, changed); err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "the configuration is left as it was, its file could not be written: %v", err)
	}
	next := *old
	if _, err := compat.BindProperties(live, &next); err != nil {
		return nil, err // has been bound before
	}
	b.log.Info("configuration updated", "changed", changed, "fromTheNextStartOn", later, "ignored", unknown, "client", c.Conn().RemoteAddr())
	b.cfg.Store(&next)
	if b.settings.mu.next == nil {
		b.settings.mu.next = make(map[string]string)
	}
	maps.Copy(b.settings.mu.next, later)
	b.settings.mu.version = b.settings.mu.version.Next(b.clock().UnixMilli())
	b.apply(old, &next)
	return c.Success(nil), nil
}

// apply brings a changed configuration to whoever keeps part of it.
func (b *Broker) apply(old, next *Config) {
	b.store.SetConfig(&next.Config)
	if next.NamesrvAddr != old.NamesrvAddr {
		b.registrar.setServers(splitNamesrvAddr(next.NamesrvAddr))
	}
	if next.BrokerPermission != old.BrokerPermission {
		b.topics.Touch()
		b.registrar.all()
	}
}

// writeConfig puts changed keys into the configuration file, leaving the others as they stand there. (The
// official broker overwrites the file with every key that it has.)
func (b *Broker) writeConfig(cfg *Config, changed map[string]string) error {
	path := cfg.file
	if path == "" {
		path = filepath.Join(cfg.configDir(), updatedFile)
		changed = maps.Clone(changed)
		delete(changed, "storePathRootDir") // that file lies below it
	}
	if len(changed) == 0 {
		return nil
	}
	data, err := b.files.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return compat.WriteConfigFile(b.files, path, editProperties(data, changed))
}

// editProperties replaces the lines of the changed keys in a properties text and adds those that it has not.
func editProperties(text []byte, changed map[string]string) []byte {
	rest := maps.Clone(changed)
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		key := string(bytes.TrimSpace(line))
		if i := strings.IndexAny(key, "=: \t"); i >= 0 {
			key = key[:i]
		}
		value, ok := rest[key]
		if !ok {
			out.Write(line)
			if !bytes.HasSuffix(line, []byte("\n")) {
				out.WriteByte('\n')
			}
			continue
		}
		out.Write(propertyLine(key, value))
		delete(rest, key)
	}
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		out.Write(propertyLine(key, rest[key]))
	}
	return out.Bytes()
}

func propertyLine(key, value string) []byte {
	p := new(compat.Properties)
	p.Set(key, value)
	return p.Bytes()
}
