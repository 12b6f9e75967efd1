package remoting

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"rocketd/compat"
)

// TLSMode says what a server does with connections that begin with a TLS handshake, and with those that do not.
type TLSMode string

// The modes of tls.server.mode.
const (
	TLSPermissive TLSMode = "permissive" // both are served
	TLSEnforcing  TLSMode = "enforcing"  // plain ones are closed
	TLSDisabled   TLSMode = "disabled"   // TLS ones are closed
)

// TLSConfig is what TLS can be told: the system properties of TlsSystemConfig of 4.9.8. The zero value has the official
// defaults.
type TLSConfig struct {
	Mode     TLSMode // tls.server.mode; "" = permissive
	Enable   string  // tls.enable: whether to dial with TLS; "" = when the mode is enforcing
	File     string  // tls.config.file; "" = /etc/rocketmq/tls.properties, which may be missing
	TestMode string  // tls.test.mode.enable; "" = true: a certificate made at the start, and nobody is checked

	NeedClientAuth string // tls.server.need.client.auth: none, optional or require; "" = none
	Server, Client TLSSide
}

// TLSSide is one side of TLS: tls.server.… or tls.client.….
type TLSSide struct {
	CertPath      string // certPath: chain of certificates, PEM
	KeyPath       string // keyPath: private key, PEM, PKCS #8 encrypted or not
	KeyPassword   string // keyPassword
	AuthPeer      bool   // authClient or authServer: the peer's certificate must be signed by one of TrustCertPath
	TrustCertPath string // trustCertPath: certificates, PEM; "" = those of the system
}

// defaultTLSFile is the file that the official server looks for.
const defaultTLSFile = "/etc/rocketmq/tls.properties"

// field is where the value of a key is, nil when it is no string or no key of TLS.
func (c *TLSConfig) field(key string) *string {
	switch key {
	case "tls.server.mode":
		return (*string)(&c.Mode)
	case "tls.enable":
		return &c.Enable
	case "tls.config.file":
		return &c.File
	case "tls.test.mode.enable":
		return &c.TestMode
	case "tls.server.need.client.auth":
		return &c.NeedClientAuth
	case "tls.server.certPath":
		return &c.Server.CertPath
	case "tls.server.keyPath":
		return &c.Server.KeyPath
	case "tls.server.keyPassword":
		return &c.Server.KeyPassword
	case "tls.server.trustCertPath":
		return &c.Server.TrustCertPath
	case "tls.client.certPath":
		return &c.Client.CertPath
	case "tls.client.keyPath":
		return &c.Client.KeyPath
	case "tls.client.keyPassword":
		return &c.Client.KeyPassword
	case "tls.client.trustCertPath":
		return &c.Client.TrustCertPath
	}
	return nil
}

// Set sets the value of a key; it is false when TLS has no such key. Words are checked by NewTLS.
func (c *TLSConfig) Set(key, value string) bool {
	switch key {
	case "tls.server.authClient":
		c.Server.AuthPeer = isTrue(value)
		return true
	case "tls.client.authServer":
		c.Client.AuthPeer = isTrue(value)
		return true
	}
	f := c.field(key)
	if f == nil {
		return false
	}
	*f = strings.TrimSpace(value)
	return true
}

// IsTLSKey tells whether a key of a configuration file is one of TLS.
func IsTLSKey(key string) bool { return new(TLSConfig).Set(key, "") }

// TLSKeys are all keys of TLS.
func TLSKeys() []string {
	return []string{
		"tls.enable", "tls.config.file", "tls.test.mode.enable", "tls.server.mode", "tls.server.need.client.auth",
		"tls.server.certPath", "tls.server.keyPath", "tls.server.keyPassword", "tls.server.authClient", "tls.server.trustCertPath",
		"tls.client.certPath", "tls.client.keyPath", "tls.client.keyPassword", "tls.client.authServer", "tls.client.trustCertPath",
	}
}

// IsSecretKey tells whether the value of a key may be shown to nobody, one that nobody knows too.
func IsSecretKey(key string) bool {
	key = strings.ToLower(key)
	for _, word := range []string{"secret", "password", "passwd", "passphrase", "pwd", "token", "credential", "signature", "apikey", "privatekey"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// SetOptions sets what a list of JVM options says of TLS: -Dtls.server.mode=enforcing and so on; other words are passed
// over. A value may stand in quotes.
func (c *TLSConfig) SetOptions(options []string) {
	for _, o := range options {
		key, value, _ := strings.Cut(strings.TrimPrefix(strings.Trim(o, `"'`), "-D"), "=")
		c.Set(key, strings.Trim(value, `"'`))
	}
}

// Dials tells whether connections to other servers are TLS: what tls.enable says, else when the own mode is enforcing.
func (c *TLSConfig) Dials() bool {
	if c.Enable != "" {
		return isTrue(c.Enable)
	}
	return c.mode() == TLSEnforcing
}

// isTrue is Boolean.parseBoolean.
func isTrue(text string) bool { return strings.EqualFold(strings.TrimSpace(text), "true") }

func (c *TLSConfig) mode() TLSMode {
	if c.Mode == "" {
		return TLSPermissive
	}
	return TLSMode(strings.ToLower(string(c.Mode)))
}

// Validate says which word means nothing. (4.9.8 takes an unknown mode for permissive, and an unknown need for none.)
func (c *TLSConfig) Validate() error {
	var all []error
	switch c.mode() {
	case TLSPermissive, TLSEnforcing, TLSDisabled:
	default:
		all = append(all, fmt.Errorf("tls.server.mode=%s: must be permissive, enforcing or disabled", c.Mode))
	}
	switch strings.ToLower(c.NeedClientAuth) {
	case "", "none", "optional", "require":
	default:
		all = append(all, fmt.Errorf("tls.server.need.client.auth=%s: must be none, optional or require", c.NeedClientAuth))
	}
	return errors.Join(all...)
}

// fileKeys are not taken from tls.config.file: the mode and tls.enable, as in 4.9.8, and its own name.
var notInFile = map[string]bool{"tls.server.mode": true, "tls.enable": true, "tls.config.file": true}

// path is the properties file to read.
func (c *TLSConfig) path() string {
	if c.File != "" {
		return c.File
	}
	return defaultTLSFile
}

// Effective is c with what tls.config.file says, which goes before all else.
func (c TLSConfig) Effective() (TLSConfig, error) { return c.withFile() }

// Checked tells whether certificates are loaded and checked; false is the test mode, in which nobody knows whom it talks to.
func (c *TLSConfig) Checked() bool { return !testMode(*c) }

// withFile returns c with what tls.config.file says, which goes before all else. A file that was named must be there.
func (c TLSConfig) withFile() (TLSConfig, error) {
	data, err := os.ReadFile(c.path())
	if errors.Is(err, fs.ErrNotExist) && c.File == "" {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("tls.config.file: %w", err)
	}
	p, err := compat.ParseProperties(data)
	if err != nil {
		return c, fmt.Errorf("tls.config.file %s: %w", c.path(), err)
	}
	for _, kv := range p.All() {
		if !notInFile[kv.Key] {
			c.Set(kv.Key, kv.Value)
		}
	}
	return c, c.Validate()
}
