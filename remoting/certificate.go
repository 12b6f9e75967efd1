package remoting

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/youmark/pkcs8"
)

// baseConfig is what both sides have in common: 1.2 and 1.3, no renegotiation (crypto/tls refuses it), and records as
// large as they may be, because a frame is of use when all of it is there.
func baseConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, DynamicRecordSizingDisabled: true}
}

// serverConfig makes the server's side (TlsHelper of 4.9.8). The lock of loading is held.
func (t *TLS) serverConfig(cfg TLSConfig) (*tls.Config, error) {
	c := baseConfig()
	if testMode(cfg) {
		if t.own == nil {
			own, err := selfSigned()
			if err != nil {
				return nil, err
			}
			t.own = own
		}
		c.Certificates = []tls.Certificate{*t.own}
		c.ClientAuth = tls.RequestClientCert
		return c, nil
	}
	pair, err := loadPair("server", cfg.Server)
	if err != nil {
		return nil, err
	}
	if pair == nil {
		return nil, errors.New("tls.test.mode.enable=false needs tls.server.certPath and tls.server.keyPath")
	}
	c.Certificates = []tls.Certificate{*pair}
	if cfg.Server.AuthPeer {
		if c.ClientCAs, err = loadTrust("server", cfg.Server); err != nil {
			return nil, err
		}
	}
	switch need := strings.ToLower(cfg.NeedClientAuth); {
	case need == "optional" && cfg.Server.AuthPeer:
		c.ClientAuth = tls.VerifyClientCertIfGiven
	case need == "optional":
		c.ClientAuth = tls.RequestClientCert
	case need == "require" && cfg.Server.AuthPeer:
		c.ClientAuth = tls.RequireAndVerifyClientCert
	case need == "require":
		c.ClientAuth = tls.RequireAnyClientCert
	}
	return c, nil
}

// clientConfig makes the client's side. As in 4.9.8 the server's name is not checked: name servers are told by address.
func clientConfig(cfg TLSConfig) (*tls.Config, error) {
	c := baseConfig()
	c.InsecureSkipVerify = true
	if testMode(cfg) {
		return c, nil
	}
	if cfg.Client.AuthPeer {
		roots, err := loadTrust("client", cfg.Client)
		if err != nil {
			return nil, err
		}
		c.VerifyConnection = func(s tls.ConnectionState) error { return verifyServer(s, roots) }
	}
	pair, err := loadPair("client", cfg.Client)
	if err != nil {
		return nil, err
	}
	if pair != nil {
		c.Certificates = []tls.Certificate{*pair}
	}
	return c, nil
}

func testMode(cfg TLSConfig) bool { return cfg.TestMode == "" || isTrue(cfg.TestMode) }

// verifyServer verifies the chain of a server's certificate; roots nil = the system's.
func verifyServer(s tls.ConnectionState, roots *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err
}

// loadPair loads certificate and key of a side; nil when it has none.
func loadPair(name string, side TLSSide) (*tls.Certificate, error) {
	if side.CertPath == "" && side.KeyPath == "" {
		return nil, nil
	}
	if side.CertPath == "" || side.KeyPath == "" {
		return nil, fmt.Errorf("tls.%s.certPath and tls.%[1]s.keyPath belong together; one is missing", name)
	}
	cert, err := os.ReadFile(side.CertPath)
	if err != nil {
		return nil, fmt.Errorf("tls.%s.certPath: %w", name, err)
	}
	key, err := os.ReadFile(side.KeyPath)
	if err != nil {
		return nil, fmt.Errorf("tls.%s.keyPath: %w", name, err)
	}
	if key, err = decryptKey(key, side.KeyPassword); err != nil {
		return nil, fmt.Errorf("tls.%s.keyPath %s: %w", name, side.KeyPath, err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls.%s.certPath %s with tls.%[1]s.keyPath %[3]s: %[4]w", name, side.CertPath, side.KeyPath, err)
	}
	return &pair, nil
}

// decryptKey returns a key in a form that crypto/tls reads. Encrypted ones are PKCS #8 with PBES2, as openssl writes them.
func decryptKey(text []byte, password string) ([]byte, error) {
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return text, nil // crypto/tls says what is wrong
		}
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY":
			if password == "" {
				return nil, errors.New("the key is encrypted and there is no keyPassword")
			}
			key, err := pkcs8.ParsePKCS8PrivateKey(block.Bytes, []byte(password))
			if err != nil {
				return nil, fmt.Errorf("the key can't be decrypted: wrong keyPassword, or not PBES2 (convert it with openssl pkcs8 -topk8 -v2 aes256): %w", err)
			}
			return encodeKey(key)
		case strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
			return nil, errors.New("the key is encrypted in the old form of openssl; convert it with openssl pkcs8 -topk8 -v2 aes256")
		}
	}
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// loadTrust loads the certificates that a side trusts; nil = the system's.
func loadTrust(name string, side TLSSide) (*x509.CertPool, error) {
	if side.TrustCertPath == "" {
		return nil, nil
	}
	text, err := os.ReadFile(side.TrustCertPath)
	if err != nil {
		return nil, fmt.Errorf("tls.%s.trustCertPath: %w", name, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("tls.%s.trustCertPath %s: no certificate in it", name, side.TrustCertPath)
	}
	return pool, nil
}

// inode tells a file from the one that takes its place.
func inode(info fs.FileInfo) string {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(sys.Dev, sys.Ino)
	}
	return ""
}
