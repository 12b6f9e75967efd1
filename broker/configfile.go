package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rocketd/broker/filter"
	"rocketd/compat"
	"rocketd/remoting"
	"rocketd/store"
)

// updatedFile holds, below the store's config folder, what UPDATE_BROKER_CONFIG has changed on a broker that was
// started without a configuration file. (The official broker writes everything it knows to
// $HOME/store/config/broker.properties then, and never reads it.)
const updatedFile = "rocketd.properties"

// ReadConfig reads the configuration file at path ("" = none) over cfg. Keys that the broker does not know are
// kept: GET_BROKER_CONFIG shows them, New names them in the log. The error names the file, the key and the value.
func ReadConfig(path string, cfg Config) (Config, error) {
	if path == "" {
		return cfg, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return cfg, err
	}
	data, err := compat.ReadOrBak(os.ReadFile, abs)
	if err != nil {
		return cfg, fmt.Errorf("configuration file: %w", err)
	}
	cfg.file = abs
	if target, err := filepath.EvalSymlinks(abs); err == nil { // an update replaces the file, not the link to it
		cfg.file = target
	}
	return cfg.merge(data, abs)
}

// merge reads properties text over c.
func (c Config) merge(data []byte, from string) (Config, error) {
	props, err := compat.ParseProperties(data)
	if err != nil {
		return c, fmt.Errorf("%s: %w", from, err)
	}
	unknown, err := compat.BindProperties(props, &c)
	if err != nil {
		return c, fmt.Errorf("%s: %w", from, err)
	}
	if name, ok := props.Get("brokerName"); ok && strings.TrimSpace(name) == "" { // it must not become the host's, which nobody has asked for
		return c, fmt.Errorf("%s: line %d: %w", from, props.Line("brokerName"), checkName("brokerName", ""))
	}
	c.odd = append(slices.Clone(c.odd), compat.OddBooleans(props, &c)...)
	c.twice = append(slices.Clone(c.twice), props.Twice()...)
	c.strange = append(slices.Clone(c.strange), checkEach(props)...)
	c.extra = slices.Clone(c.extra)
	for _, key := range unknown {
		value, _ := props.Get(key)
		c.extra = append(slices.DeleteFunc(c.extra, func(kv compat.KeyValue) bool { return kv.Key == key }),
			compat.KeyValue{Key: key, Value: value})
	}
	c.takeTLS(props)
	return c, nil
}

// readUpdates reads what an earlier run was told by UPDATE_BROKER_CONFIG; only without a configuration file.
func (c Config) readUpdates(files compat.FileSystem, log *slog.Logger) (Config, error) {
	if c.file != "" {
		return c, nil
	}
	path := filepath.Join(c.configDir(), updatedFile)
	_, err := compat.LoadConfigFile(files, path, log, func(data []byte) (err error) {
		c, err = c.merge(data, path)
		return err
	})
	if err != nil {
		return c, fmt.Errorf("what UPDATE_BROKER_CONFIG changed earlier can't be read; restore or mend %s, or move it and its .bak away to start with the defaults: %w", path, err)
	}
	return c, nil
}

// WithUpdates is the configuration with what UPDATE_BROKER_CONFIG has changed in earlier runs without a configuration file, as New
// takes it. With a file it is in that.
func (c Config) WithUpdates() (Config, error) {
	return c.readUpdates(compat.OSFiles, slog.New(slog.DiscardHandler))
}

// complete fills in what depends on the environment and on other keys, as BrokerStartup of 4.9.8.
func (c *Config) complete() {
	for _, word := range []*string{&c.BrokerName, &c.FlushDiskType, &c.BrokerRole, &c.DeleteWhen} {
		*word = strings.TrimSpace(*word) // blanks behind a value are part of it; whoever writes "SYNC_FLUSH " means SYNC_FLUSH
	}
	if c.BrokerName == "" {
		c.BrokerName = localHostName()
	}
	if c.BrokerRole != store.Slave {
		c.BrokerId = 0
	}
	c.HaListenPort = c.ListenPort + 1
	c.StorePathRootDir = absolute(c.StorePathRootDir)
	// As ConsumerFilterManager of 4.9.8: the length follows from the filter, whatever the file says.
	if b, err := c.bloom(); err == nil {
		c.BitMapLengthConsumeQueueExt = b.Bits()
	}
}

// Effective is the configuration as a broker would run with it: with the name and the addresses that it chooses
// when none are configured.
func (c Config) Effective() (Config, error) {
	c.complete()
	address, err := advertise(c.BrokerIP1)
	if err != nil {
		return c, err
	}
	c.BrokerIP1 = address.Host
	if c.BrokerIP2 == "" {
		c.BrokerIP2 = address.Host
	}
	return c, nil
}

// unserved is a setting that asks for what is not served yet: to ignore it would be unsafe.
type unserved struct {
	when func(*Config) bool
	text string
}

var notServed = []unserved{
	{func(c *Config) bool { return c.BrokerRole == store.Slave },
		"brokerRole=SLAVE: replication is not served yet; run this broker as ASYNC_MASTER, or keep the official broker for slaves"},
	{func(c *Config) bool { return c.BrokerRole == store.SyncMaster },
		"brokerRole=SYNC_MASTER: replication is not served yet, and sends would be acknowledged without a copy; set brokerRole=ASYNC_MASTER"},
	{func(c *Config) bool { return c.EnableDLegerCommitLog },
		"enableDLegerCommitLog=true: DLedger is not served yet; run this broker without it"},
	{func(c *Config) bool { return c.DuplicationEnable },
		"duplicationEnable=true: the official broker's unfinished replication mode is not served"},
	{func(c *Config) bool { return c.FetchNamesrvAddrByAddressServer },
		"fetchNamesrvAddrByAddressServer=true: fetching the list of name servers over HTTP is not served; set namesrvAddr"},
	{func(c *Config) bool { return strings.TrimSpace(c.MessageStorePlugIn) != "" },
		"messageStorePlugIn: Java plug-ins can't be loaded; remove the key"},
}

// bloom makes the bloom filter of expressions.
func (c *Config) bloom() (*filter.Bloom, error) {
	return filter.NewBloom(c.MaxErrorRateOfBloomFilter, c.ExpectConsumerNumUseFilter)
}

// Validate says what in the configuration keeps the broker from starting, and what to do about it.
func (c *Config) Validate() error {
	var all []error
	for _, r := range notServed {
		if r.when(c) {
			all = append(all, errors.New(r.text))
		}
	}
	if c.AdminAccountsOnly && !c.AclEnable && c.RocketmqHome == "" {
		all = append(all, errors.New("adminAccountsOnly=true: rocketmqHome (or environment variable ROCKETMQ_HOME) must say where conf/plain_acl.yml and conf/acl lie"))
	}
	if err := c.SurfaceConfig.Validate(); err != nil {
		all = append(all, err)
	}
	if c.AclEnable && c.RocketmqHome == "" {
		all = append(all, errors.New("aclEnable=true: rocketmqHome (or environment variable ROCKETMQ_HOME) must say where conf/plain_acl.yml and conf/acl lie"))
	}
	if err := c.TLS.Validate(); err != nil {
		all = append(all, err)
	}
	if c.BrokerName != "" { // else the host's name is taken
		if err := checkName("brokerName", c.BrokerName); err != nil {
			all = append(all, err)
		}
	}
	if err := checkName("brokerClusterName", c.BrokerClusterName); err != nil {
		all = append(all, err)
	}
	if _, err := c.bloom(); err != nil {
		all = append(all, err)
	}
	if c.StorePathRootDir == "" {
		all = append(all, errors.New("storePathRootDir is empty; give the folder of the store, or remove the key to get the default"))
	}
	switch c.FlushDiskType {
	case store.AsyncFlush, store.SyncFlush:
	default:
		all = append(all, fmt.Errorf("flushDiskType=%s: must be ASYNC_FLUSH or SYNC_FLUSH%s", c.FlushDiskType, compat.CommentHint(c.FlushDiskType)))
	}
	switch c.BrokerRole {
	case store.AsyncMaster, store.SyncMaster, store.Slave:
	default:
		all = append(all, fmt.Errorf("brokerRole=%s: must be ASYNC_MASTER, SYNC_MASTER or SLAVE%s", c.BrokerRole, compat.CommentHint(c.BrokerRole)))
	}
	if err := CheckNamesrvAddr(c.NamesrvAddr); err != nil {
		all = append(all, fmt.Errorf("namesrvAddr: %w", err))
	}
	if c.ListenPort < 0 || c.ListenPort > 65534 || c.ListenPort == 1 || c.ListenPort == 2 {
		all = append(all, fmt.Errorf("listenPort=%d: must leave room for listenPort-2 and listenPort+1", c.ListenPort))
	}
	if len(all) == 0 { // the parts would say much of it again
		all = append(all, c.checkParts())
	}
	return errors.Join(all...)
}

// CheckNamesrvAddr tells whether a list of name servers can be used; "" is none. The first words of the error are the
// official broker's.
func CheckNamesrvAddr(list string) error {
	for _, a := range splitNamesrvAddr(list) {
		host, port, ok := cutPort(a)
		n, err := strconv.Atoi(port)
		why := ""
		switch {
		case strings.Contains(a, "://"):
			why = "an address has no http:// or the like before it"
		case !ok || port == "":
			why = "the port is missing"
		case host == "":
			why = "the host is missing"
		case err != nil || n < 1 || n > 65535:
			why = "the port is no number from 1 to 65535"
		case strings.ContainsAny(host, "/\\@?#\"' \t"):
			why = "the host has characters that no host's name has"
		default:
			continue
		}
		return fmt.Errorf("the Name Server Address[%s] illegal, please set it as follows, \"127.0.0.1:9876;192.168.0.1:9876\" (%s: %s)", list, a, why)
	}
	return nil
}

// cutPort parts host:port at the last colon.
func cutPort(addr string) (host, port string, ok bool) {
	i := strings.LastIndexByte(addr, ':')
	if i < 0 {
		return "", "", false
	}
	return addr[:i], addr[i+1:], true
}

// logUnknown names the keys that have no meaning here, once.
func (c *Config) logUnknown(log *slog.Logger) {
	var keys []string
	for _, kv := range c.extra {
		if !remoting.IsTLSKey(kv.Key) {
			keys = append(keys, kv.Key)
		}
	}
	if len(keys) == 0 {
		return
	}
	c.tellUnknown(log, keys)
}

// tellUnknown names keys that do not exist: see compat.TellUnknownKeys.
func (c *Config) tellUnknown(log *slog.Logger, keys []string) {
	compat.TellUnknownKeys(log, keys, append(c.known(), remoting.TLSKeys()...), "RocketMQ 4.9.8")
}

// known are the keys that have a field.
func (c *Config) known() []string {
	var keys []string
	for _, kv := range compat.PropertiesOf(c) {
		keys = append(keys, kv.Key)
	}
	return keys
}

// Items are all keys with their values in key order, unknown ones too: what GET_BROKER_CONFIG and
// --printConfigItem show.
func (c *Config) Items() []compat.KeyValue {
	items := append(compat.PropertiesOf(c), c.extra...)
	slices.SortFunc(items, func(a, b compat.KeyValue) int { return strings.Compare(a.Key, b.Key) })
	return slices.CompactFunc(items, func(a, b compat.KeyValue) bool { return a.Key == b.Key })
}

// importantKeys are those that the official classes mark as important fields.
var importantKeys = []string{
	"namesrvAddr", "brokerIP1", "brokerName", "brokerClusterName", "brokerId", "autoCreateTopicEnable",
	"autoCreateSubscriptionGroup", "msgTraceTopicName", "traceTopicEnable", "rejectTransactionMessage",
	"fetchNamesrvAddrByAddressServer", "transactionTimeOut", "transactionCheckMax", "transactionCheckInterval",
	"aclEnable", "storePathRootDir", "storePathCommitLog", "storePathDLedgerCommitLog",
	"flushIntervalCommitLog", "commitIntervalCommitLog", "flushCommitLogTimed", "deleteWhen", "fileReservedTime",
	"maxTransferBytesOnMessageInMemory", "maxTransferCountOnMessageInMemory", "maxTransferBytesOnMessageInDisk",
	"maxTransferCountOnMessageInDisk", "accessMessageInMemoryMaxRatio", "messageIndexEnable", "messageIndexSafe",
	"haMasterAddress", "brokerRole", "flushDiskType", "cleanFileForciblyEnable", "transientStorePoolEnable",
}

// ImportantItems are the keys that --printImportantConfig shows.
func (c *Config) ImportantItems() []compat.KeyValue {
	return slices.DeleteFunc(c.Items(), func(kv compat.KeyValue) bool { return !slices.Contains(importantKeys, kv.Key) })
}
