package namesrv

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"rocketd/compat"
	"rocketd/remoting"
	"rocketd/remoting/acl"
	"rocketd/remoting/acl/admin"
)

// Config is what a name server can be told; keys and defaults as NamesrvConfig and NettyServerConfig of 4.9.8.
type Config struct {
	// Where things lie, and who it is.
	RocketmqHome    string // only shown
	KvConfigPath    string // file of the KV configuration
	ConfigStorePath string // file that UPDATE_NAMESRV_CONFIG writes; the configuration file when one was read
	ProductEnvName  string // only shown: belongs to clusterTest

	ClusterTest        bool   // refused: asks another name server for routes
	AclPlainFile       string // the default ACL file, below RocketmqHome, when accounts are asked for; as of a broker. Read at start
	BrokerAccountsOnly bool   // own key: registrations of brokers must be signed by an account with admin: true; official brokers do not sign. Read at start
	OrderMessageEnable bool   // routes carry the queue order of their topic (KV namespace ORDER_TOPIC_CONFIG)
	MaxRouteBytes      int64  // bytes that brokers and their topics take in memory, roughly; a registration that needs more is answered SYSTEM_ERROR; 0 = no bound. Live
	MaxKvConfigBytes   int64  // bytes of the KV configuration as JSON; a put that needs more is answered SYSTEM_ERROR; 0 = no bound. Live
	ConfigBlackList    string // keys that UPDATE_NAMESRV_CONFIG refuses, with semicolons between

	admin.SurfaceConfig
	remoting.ServerConfig
	TLS remoting.TLSConfig `rmq:"-"` // tls.server.… and so on: system properties of the official server. Read at start

	// Netty's. They are read, kept and shown, and have no effect here.
	ServerWorkerThreads                int
	ServerCallbackExecutorThreads      int
	ServerSelectorThreads              int
	ServerOnewaySemaphoreValue         int
	ServerAsyncSemaphoreValue          int
	ServerSocketSndBufSize             int
	ServerSocketRcvBufSize             int
	WriteBufferHighWaterMark           int
	WriteBufferLowWaterMark            int
	ServerPooledByteBufAllocatorEnable bool
	UseEpollNativeSelector             bool

	extra []compat.KeyValue // keys of the file that have no field, in key order
	odd   []compat.KeyValue // booleans of the file that are neither true nor false
	twice []string          // keys that the file has with different values
	read  bool              // the file of updates is read at the start
}

// DefaultConfig returns the official defaults for a name server whose files lie in the folder namesrv of home:
// the user's home for the official server.
func DefaultConfig(home string) Config {
	cfg := Config{
		KvConfigPath:    filepath.Join(home, "namesrv", "kvConfig.json"),
		ConfigStorePath: filepath.Join(home, "namesrv", "namesrv.properties"),
		ProductEnvName:  "center",
		AclPlainFile:    "conf/plain_acl.yml",
		ConfigBlackList: "configBlackList;configStorePath;kvConfigPath",
		ServerConfig:    remoting.DefaultServerConfig(),

		MaxRouteBytes: 1 << 30, MaxKvConfigBytes: 12 << 20,

		ServerWorkerThreads:                8,
		ServerSelectorThreads:              3,
		ServerOnewaySemaphoreValue:         256,
		ServerAsyncSemaphoreValue:          64,
		ServerPooledByteBufAllocatorEnable: true,
	}
	cfg.ListenPort = 9876
	return cfg
}

// ReadUpdates is ReadConfig of what updates have written for a name server without a configuration file: nothing when
// there has been none. The official name server writes that file and never reads it.
func ReadUpdates(cfg Config) (Config, error) {
	read, err := ReadConfig(cfg.ConfigStorePath, cfg)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // what takes the folder's place is told of later
		cfg.read = true
		return cfg, nil
	}
	return read, err
}

// ReadConfig reads the properties file at path over cfg; updates will be written to it. Keys without a meaning here are
// kept: they are shown by GET_NAMESRV_CONFIG and named in the log at the start. The error names the file, the key
// and the value.
func ReadConfig(path string, cfg Config) (Config, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return cfg, err
	}
	data, err := compat.ReadOrBak(os.ReadFile, path)
	if err != nil {
		return cfg, fmt.Errorf("configuration file: %w", err)
	}
	p, err := compat.ParseProperties(data)
	if err == nil {
		cfg.odd, cfg.twice = compat.OddBooleans(p, &cfg), p.Twice()
		err = cfg.bind(p, true)
		for _, kv := range p.All() {
			cfg.TLS.Set(kv.Key, kv.Value)
		}
		cfg.extra = slices.DeleteFunc(cfg.extra, func(kv compat.KeyValue) bool { return remoting.IsSecretKey(kv.Key) }) // shown to nobody
	}
	if err != nil {
		return cfg, fmt.Errorf("configuration file %s: %w", path, err)
	}
	cfg.ConfigStorePath, cfg.read = path, true
	return cfg, nil
}

// bind writes properties to c. Keys without a field are kept when add is set, else only those that are kept already
// change (as Configuration#mergeIfExist).
func (c *Config) bind(p *compat.Properties, add bool) error {
	unknown, err := compat.BindProperties(p, c)
	c.extra = slices.Clone(c.extra)
	for _, key := range unknown {
		value, _ := p.Get(key)
		i, ok := slices.BinarySearchFunc(c.extra, key, func(kv compat.KeyValue, key string) int { return strings.Compare(kv.Key, key) })
		switch {
		case ok:
			c.extra[i].Value = value
		case add:
			c.extra = slices.Insert(c.extra, i, compat.KeyValue{Key: key, Value: value})
		}
	}
	return err
}

// isExtra tells whether a key is one of the file's that nobody knows.
func (c *Config) isExtra(key string) bool {
	return slices.ContainsFunc(c.extra, func(kv compat.KeyValue) bool { return kv.Key == key })
}

// Validate says what in the configuration is not served. To ignore such a setting would be unsafe.
func (c *Config) Validate() error {
	if c.ClusterTest {
		return errors.New("clusterTest=true is not supported: this name server asks no other for routes; remove the key")
	}
	if c.ListenPort < 0 || c.ListenPort > 65535 {
		return fmt.Errorf("listenPort=%d: must be a port from 1 to 65535", c.ListenPort)
	}
	if compat.LooksUnexpanded(c.KvConfigPath) {
		if _, err := os.Stat(filepath.Dir(c.KvConfigPath)); err != nil {
			return fmt.Errorf("kvConfigPath=%s: \"~\" and variables are not expanded in configuration files; write the whole path", c.KvConfigPath)
		}
	}
	if c.wantsAccounts() && c.RocketmqHome == "" {
		return errors.New("adminAccountsOnly=true, brokerAccountsOnly=true: rocketmqHome (or environment variable ROCKETMQ_HOME) must say where conf/plain_acl.yml and conf/acl lie")
	}
	return errors.Join(c.SurfaceConfig.Validate(), c.TLS.Validate())
}

// wantsAccounts tells whether requests are checked by ACL files.
func (c *Config) wantsAccounts() bool { return c.AdminAccountsOnly || c.BrokerAccountsOnly }

// AclFolder is where the ACL files of the name server lie.
func (c *Config) AclFolder() acl.Folder {
	return acl.Folder{Home: c.RocketmqHome, File: c.AclPlainFile}
}

// withoutEffect are the keys that are kept and shown, and change nothing.
var withoutEffect = strings.Fields(`
	serverWorkerThreads serverCallbackExecutorThreads serverSelectorThreads serverOnewaySemaphoreValue
	serverAsyncSemaphoreValue serverSocketSndBufSize serverSocketRcvBufSize writeBufferHighWaterMark
	writeBufferLowWaterMark serverPooledByteBufAllocatorEnable useEpollNativeSelector`)

// ignored are the keys that are unknown, and those without effect that are not set to their default.
func (c *Config) ignored() (unknown, idle []string) {
	usual := make(map[string]string)
	for _, kv := range compat.PropertiesOf(DefaultConfig("")) {
		usual[kv.Key] = kv.Value
	}
	for _, kv := range c.Items() {
		value, known := usual[kv.Key]
		switch {
		case remoting.IsTLSKey(kv.Key):
		case !known:
			unknown = append(unknown, kv.Key)
		case kv.Value != value && slices.Contains(withoutEffect, kv.Key):
			idle = append(idle, kv.Key)
		}
	}
	return unknown, idle
}

// known are the keys that have a field.
func (c *Config) known() []string {
	var keys []string
	for _, kv := range compat.PropertiesOf(c) {
		keys = append(keys, kv.Key)
	}
	return keys
}

// unwritable tells why the folder of a file could not be written to, nil when it could.
func unwritable(path string) error {
	dir := filepath.Dir(path)
	for {
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir) // it would be made
			continue
		}
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "open", Path: dir, Err: unix.ENOTDIR}
		}
		if err != nil {
			return err
		}
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return &fs.PathError{Op: "write to", Path: dir, Err: err}
		}
		return nil
	}
}

// Items returns all keys and values in key order, those without a meaning too.
func (c *Config) Items() []compat.KeyValue {
	items := append(compat.PropertiesOf(c), c.extra...)
	slices.SortStableFunc(items, func(a, b compat.KeyValue) int { return strings.Compare(a.Key, b.Key) })
	return items
}

// Text is the configuration as the text of a properties file: what GET_NAMESRV_CONFIG answers.
func (c *Config) Text() []byte {
	var b bytes.Buffer
	for _, kv := range c.Items() {
		b.Write(compat.AppendProperty(b.AvailableBuffer(), kv.Key, kv.Value))
	}
	return b.Bytes()
}

// blackList is the keys that may not be updated (DefaultRequestProcessor#initConfigBlackList).
func (c *Config) blackList() map[string]bool {
	list := map[string]bool{"configBlackList": true, "configStorePath": true, "kvConfigPath": true, "rocketmqHome": true, "aclPlainFile": true, "brokerAccountsOnly": true, "bindAddress": true}
	for _, key := range admin.Keys {
		list[key] = true
	}
	for key := range strings.SplitSeq(c.ConfigBlackList, ";") {
		list[key] = true
	}
	return list
}
