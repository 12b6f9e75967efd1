package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"

	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/remoting"
	"rocketd/store"
	"rocketd/store/vfs"
)

// What is looked at before anything is opened, so that a start that fails leaves no trace, and what is said of the
// configuration.

// storeKey is what sets the store's folder, unless Options say otherwise.
const storeKey = "storePathRootDir in the configuration file (-c)"

// fastConfig is the configuration of the fast port.
func (c *Config) fastConfig() remoting.ServerConfig {
	fast := c.ServerConfig
	if fast.ListenPort != 0 {
		fast.ListenPort -= 2
	}
	hint := fast.PortHint
	if hint == "" {
		hint = "set listenPort in the configuration file (-c)"
	}
	fast.PortHint = fmt.Sprintf("it is the fast port, always listenPort-2; %s", hint)
	return fast
}

// checkPorts tries both ports.
func (c *Config) checkPorts() error {
	if c.ListenPort == 0 {
		return nil
	}
	return errors.Join(remoting.CheckListen(c.ServerConfig), remoting.CheckListen(c.fastConfig()))
}

// checkPaths refuses paths that were meant to be expanded: nobody does that, the official broker neither. A store
// that lies at the literal path is taken.
func (c *Config) checkPaths(files vfs.FS) error {
	for _, p := range []struct{ key, path string }{
		{"storePathRootDir", c.StorePathRootDir}, {"storePathCommitLog", c.StorePathCommitLog},
	} {
		if !compat.LooksUnexpanded(p.path) {
			continue
		}
		if _, err := files.Stat(p.path); err == nil {
			continue
		}
		return fmt.Errorf("%s=%s: \"~\" and variables are not expanded in configuration files; write the whole path", p.key, p.path)
	}
	return nil
}

// checkName refuses names of brokers and clusters that can't be written down.
func checkName(key, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s is empty; remove the key to get the default, or give a name", key)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == '\\' }):
		return fmt.Errorf("%s=%q has characters that no name may have; use letters, digits, - and _", key, name)
	}
	return nil
}

// Review tells log what of the configuration is not what its author may think. The error is what keeps a broker from starting
// with it, apart from what the machine and the store say.
func (c Config) Review(log *slog.Logger) error {
	brokerId := c.BrokerId
	c.complete()
	c.logOddities(log, brokerId)
	return errors.Join(c.Validate(), c.checkPaths(vfs.OS))
}

// logOddities says what of the configuration is not what its author may think. brokerId is as it was configured.
func (c *Config) logOddities(log *slog.Logger, brokerId int64) {
	c.logUnknown(log)
	if keys := c.ignored(); len(keys) > 0 {
		log.Warn("configuration keys that are accepted and have no effect here", "keys", keys)
	}
	for _, kv := range c.odd {
		log.Warn("a boolean that is neither true nor false; it is taken for false, as the official broker does"+compat.CommentHint(kv.Value), "key", kv.Key, "value", kv.Value)
	}
	for _, key := range c.twice {
		log.Warn("a configuration key is there more than once, with different values; the last counts", "key", key)
	}
	for _, err := range c.strange {
		log.Warn("a configuration value out of its range; it is taken as it is, as the official broker does", "err", err)
	}
	if c.BrokerRole != store.Slave && brokerId != 0 {
		log.Warn("brokerId becomes 0: the broker is a master (brokerRole)", "brokerId", brokerId, "brokerRole", c.BrokerRole)
	}
	for _, n := range []struct{ key, name string }{{"brokerName", c.BrokerName}, {"brokerClusterName", c.BrokerClusterName}} {
		if !topics.IsLegal(n.name) {
			log.Warn("a name that is no legal topic name: the topic of that name can't be used, all else can", "key", n.key, "value", n.name)
		}
	}
}

// ignored are the keys without effect that are not set to their default.
func (c *Config) ignored() []string {
	usual := make(map[string]string)
	defaults := DefaultConfig(c.StorePathRootDir)
	defaults.BitMapLengthConsumeQueueExt = c.BitMapLengthConsumeQueueExt // follows from other keys
	for _, kv := range defaults.Items() {
		usual[kv.Key] = kv.Value
	}
	var keys []string
	for _, kv := range c.Items() {
		if value, known := usual[kv.Key]; known && kv.Value != value && withoutEffect[kv.Key] != "" {
			keys = append(keys, kv.Key)
		}
	}
	return keys
}

// explain adds to an error of the store's folder what sets the folder, who could not use it and what helps.
func (c *Config) explain(err error, key string) error {
	root := c.StorePathRootDir
	remedy := ""
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return fmt.Errorf("another broker is running on the store %s (its lock file is locked): stop that one, or give this one a folder of its own with %s", root, key)
	case errors.Is(err, fs.ErrPermission):
		remedy = "give it the folder and all in it (chown -R), or start as their owner, or choose another folder"
	case errors.Is(err, syscall.EROFS):
		remedy = "the file system is mounted read-only; mount it for writing, or choose another folder"
	case errors.Is(err, syscall.ENOTDIR):
		remedy = "something on the path is a file and no folder; move it away, or choose another folder"
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ELOOP):
		remedy = "a link that leads nowhere stands where a folder should be; mount its disk, or mend the link"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		remedy = "the disk is full; make room, or choose another folder"
	default:
		return err
	}
	return fmt.Errorf("the store %s can't be used by %s: %s (its folder is chosen by %s): %w", root, whoami(), remedy, key, err)
}

// whoami is the user that this process runs as.
func whoami() string {
	uid := os.Getuid()
	if u, err := user.LookupId(fmt.Sprint(uid)); err == nil && u.Username != "" {
		return fmt.Sprintf("user %s (uid %d)", u.Username, uid)
	}
	return fmt.Sprintf("uid %d", uid)
}

// listening is where a server with this configuration and port listens: what is bound, not what clients are told.
func listening(cfg remoting.ServerConfig, port int) string {
	if cfg.BindAddress == "" {
		return fmt.Sprintf("*:%d", port)
	}
	return hostPort(cfg.BindAddress, port)
}

// absolute makes a path absolute where that can be done.
func absolute(path string) string {
	if path == "" {
		return path
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
