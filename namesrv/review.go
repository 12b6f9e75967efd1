package namesrv

import (
	"log/slog"

	"rocketd/compat"
	"rocketd/remoting"
)

// Review tells log what of the configuration is not what its author may think. The error is what keeps a name server from
// starting with it.
func (c *Config) Review(log *slog.Logger) error {
	c.tell(log)
	return c.Validate()
}

// tell is what the log says of a configuration.
func (c *Config) tell(log *slog.Logger) {
	unknown, idle := c.ignored()
	c.tellUnknown(log, unknown)
	if len(idle) > 0 {
		log.Warn("configuration keys that are accepted and have no effect here", "keys", idle)
	}
	for _, kv := range c.odd {
		log.Warn("a boolean that is neither true nor false; it is taken for false, as the official name server does"+compat.CommentHint(kv.Value), "key", kv.Key, "value", kv.Value)
	}
	for _, key := range c.twice {
		log.Warn("a configuration key is there more than once, with different values; the last counts", "key", key)
	}
	if err := unwritable(c.KvConfigPath); err != nil {
		log.Warn("KV configuration can't be saved: changes of it will be refused; make the folder writable, or set kvConfigPath to another", "file", c.KvConfigPath, "error", err)
	}
}

// tellUnknown names keys that do not exist: see compat.TellUnknownKeys.
func (c *Config) tellUnknown(log *slog.Logger, keys []string) {
	compat.TellUnknownKeys(log, keys, append(c.known(), remoting.TLSKeys()...), "the name server of RocketMQ 4.9.8")
}
