package broker

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"rocketd/compat"
)

// Behaviour: how the configuration of a running broker changes, by request 25 or because its file is read again. The
// official broker sets fields that others read later; here a checked copy takes the place of the configuration.

// changeLocked checks new values and, when all are good, writes them down, puts them in force and tells whoever keeps
// part of the configuration; else nothing changes. The lock of settings is held.
func (b *Broker) changeLocked(props *compat.Properties, by string, write func(*Config, []compat.KeyValue) error) error {
	old := b.config()
	wanted, err := b.nextLocked(old)
	if err != nil {
		return err
	}
	unknown, err := compat.BindProperties(props, wanted)
	if err == nil {
		err = checkValues(props)
	}
	if err != nil {
		return err
	}
	wanted.complete()
	if err := errors.Join(wanted.Validate(), b.checkChange(old, wanted)); err != nil {
		return err
	}
	for _, kv := range compat.OddBooleans(props, wanted) {
		b.log.Warn("a boolean that is neither true nor false; it is taken for false, as the official broker does", "key", kv.Key, "value", kv.Value)
	}
	next := *old
	next.extra = slices.Clone(old.extra)
	var changed []compat.KeyValue
	var ignored, later []string
	live, waiting := new(compat.Properties), make(map[string]string)
	for _, kv := range props.All() {
		extra := slices.IndexFunc(next.extra, func(e compat.KeyValue) bool { return e.Key == kv.Key })
		switch {
		case slices.Contains(unknown, kv.Key) && extra < 0:
			ignored = append(ignored, kv.Key)
			continue
		case slices.Contains(unknown, kv.Key):
			next.extra[extra].Value = kv.Value
		case slices.Contains(startKeys, kv.Key):
			waiting[kv.Key] = kv.Value
			later = append(later, kv.Key)
		default:
			live.Set(kv.Key, kv.Value)
		}
		changed = append(changed, kv)
	}
	if err := write(old, changed); err != nil {
		return fmt.Errorf("its file could not be written: %w", err)
	}
	if _, err := compat.BindProperties(live, &next); err != nil {
		return err // has been bound before
	}
	if b.settings.mu.next == nil {
		b.settings.mu.next = make(map[string]string)
	}
	maps.Copy(b.settings.mu.next, waiting)
	b.installLocked(old, &next)
	b.log.Info("configuration updated", "changed", changed, "needARestart", later, "ignored", ignored, "by", by)
	next.tellUnknown(b.log, ignored)
	return nil
}

// nextLocked is the configuration that the next start would find: cfg with the updates that wait for it.
func (b *Broker) nextLocked(cfg *Config) (*Config, error) {
	next := *cfg
	waiting := new(compat.Properties)
	for key, value := range b.settings.mu.next {
		waiting.Set(key, value)
	}
	_, err := compat.BindProperties(waiting, &next)
	return &next, err
}

// installLocked puts a configuration in force and brings it to whoever keeps part of it.
func (b *Broker) installLocked(old, next *Config) {
	b.cfg.Store(next)
	_ = b.surface.Set(next.SurfaceConfig) // has been validated
	b.settings.mu.version = b.settings.mu.version.Next(b.clock().UnixMilli())
	b.store.SetConfig(&next.Config)
	if next.NamesrvAddr != old.NamesrvAddr {
		b.registrar.setServers(splitNamesrvAddr(next.NamesrvAddr))
	}
	if next.BrokerPermission != old.BrokerPermission {
		b.topics.Touch()
		b.registrar.all()
	}
}

// Reload puts in force what has changed in the configuration file: read is what New would be given now. Nothing is
// written. The error says what is wrong, and then everything stays as it was.
func (b *Broker) Reload(read Config) error {
	b.settings.mu.Lock()
	defer b.settings.mu.Unlock()
	read, err := read.readUpdates(b.files, b.log)
	if err != nil {
		return err
	}
	old := b.config()
	brokerId := read.BrokerId
	read.complete()
	if read.BrokerIP1 == "" {
		read.BrokerIP1 = old.BrokerIP1 // chosen at the start
	}
	if read.BrokerIP2 == "" {
		read.BrokerIP2 = old.BrokerIP2
	}
	if err := read.Validate(); err != nil {
		return err
	}
	read.logOddities(b.log, brokerId)
	credentials, err := b.readCredentials(&read)
	if err := errors.Join(b.reloadTLS(old, &read), err); err != nil {
		return err
	}
	shown, err := b.nextLocked(old)
	if err != nil {
		return err
	}
	was := make(map[string]string)
	for _, kv := range compat.PropertiesOf(shown) {
		was[kv.Key] = kv.Value
	}
	props := new(compat.Properties)
	for _, kv := range compat.PropertiesOf(&read) {
		if was[kv.Key] != kv.Value && kv.Key != "haListenPort" { // that follows listenPort
			props.Set(kv.Key, kv.Value)
		}
	}
	if len(props.Keys()) == 0 && slices.Equal(read.extra, old.extra) {
		b.credentials.Store(credentials) // its file may have
		b.log.Info("configuration file read again: nothing has changed", "file", old.file)
		return nil
	}
	if err := b.changeLocked(props, "its file", func(*Config, []compat.KeyValue) error { return nil }); err != nil {
		return err
	}
	b.credentials.Store(credentials)
	next := *b.config()
	next.extra = read.extra
	b.cfg.Store(&next)
	return nil
}

// writeConfig puts changed keys into the configuration file, leaving all else as it stands there. (The official
// broker overwrites the file with every key that it has.)
func (b *Broker) writeConfig(cfg *Config, changed []compat.KeyValue) error {
	path := cfg.file
	if path == "" {
		path = filepath.Join(cfg.configDir(), updatedFile)
	}
	if len(changed) == 0 {
		return nil
	}
	return compat.EditConfigFile(b.files, path, changed)
}
