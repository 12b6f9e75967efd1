package broker

import (
	"slices"
	"strconv"

	"rocketd/compat"
	"rocketd/remoting"
)

// TLS of both ports, and of the connections to name servers. Its settings are system properties of the official
// broker; here they may stand in the configuration file too.

// takeTLS takes the settings of TLS out of what the configuration file says. Keys that it has no meaning for are left, and
// those of TLS too, to be shown; but no password.
func (c *Config) takeTLS(props *compat.Properties) {
	if _, ok := props.Get("useTLS"); ok {
		c.dialsSet = true
	}
	for _, kv := range props.All() {
		c.TLS.Set(kv.Key, kv.Value)
	}
	c.extra = slices.DeleteFunc(c.extra, func(kv compat.KeyValue) bool { return remoting.IsSecretKey(kv.Key) })
}

// tlsConfig is the settings of TLS with what useTLS says of tls.enable. Left alone, useTLS is what tls.enable says, else
// whether the mode is enforcing (BrokerStartup of 4.9.8).
func (c *Config) tlsConfig() remoting.TLSConfig {
	t := c.TLS
	if c.dialsSet || c.UseTLS {
		t.Enable = strconv.FormatBool(c.UseTLS)
	}
	return t
}

// DialsTLS tells whether connections to name servers are TLS.
func (c *Config) DialsTLS() bool {
	t := c.tlsConfig()
	return t.Dials()
}

// openTLS loads the certificates and gives them to those who use them.
func (b *Broker) openTLS(cfg *Config) (remoting.ClientConfig, error) {
	settings := cfg.tlsConfig()
	t, err := remoting.NewTLS(settings, b.log)
	if err != nil {
		return cfg.ClientConfig, err
	}
	b.tls = t
	client := cfg.ClientConfig
	if settings.Dials() {
		client.TLS = t
	}
	return client, nil
}

// serveTLS is a server's configuration with TLS.
func (b *Broker) serveTLS(cfg remoting.ServerConfig) remoting.ServerConfig {
	cfg.TLS = b.tls
	return cfg
}

// reloadTLS loads the files of TLS again. Its settings count from the next start on.
func (b *Broker) reloadTLS(old, read *Config) error {
	if read.tlsConfig() != old.tlsConfig() {
		b.log.Warn("settings of TLS have changed; they count from the next start on")
	}
	return b.tls.Reload()
}
