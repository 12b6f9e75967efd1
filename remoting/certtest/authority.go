// Package certtest makes certificates for tests of TLS.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for tests of TLS.
type Authority struct {
	tb   testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	CertPath    string // its own certificate, PEM
	NothingPath string // a tls.config.file that says nothing: the machine's own is no matter of a test
}

// Identity is a certificate with its key, in files.
type Identity struct {
	CertPath, KeyPath string // PEM, the key as PKCS #8
	Pair              tls.Certificate
}

// NewAuthority makes an authority whose files are in a folder of the test's.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, dir: tb.TempDir()}
	a.key = newKey(tb)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority " + filepath.Base(a.dir)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = a.sign(template, template, a.key)
	a.CertPath = filepath.Join(a.dir, "ca.pem")
	write(tb, a.CertPath, "CERTIFICATE", a.cert.Raw)
	a.NothingPath = filepath.Join(a.dir, "nothing.properties")
	if err := os.WriteFile(a.NothingPath, nil, 0o600); err != nil {
		tb.Fatal(err)
	}
	return a
}

// Issue makes an identity, good for both sides, in the files NAME.pem and NAME.key; again it replaces them.
func (a *Authority) Issue(name string) Identity {
	a.tb.Helper()
	key := newKey(a.tb)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.tb.Fatal(err)
	}
	cert := a.sign(&x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key)
	id := Identity{
		CertPath: filepath.Join(a.dir, name+".pem"), KeyPath: filepath.Join(a.dir, name+".key"),
		Pair: tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key},
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.tb.Fatal(err)
	}
	write(a.tb, id.CertPath, "CERTIFICATE", cert.Raw)
	write(a.tb, id.KeyPath, "PRIVATE KEY", der)
	return id
}

// Pool trusts the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func (a *Authority) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	if err != nil {
		a.tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.tb.Fatal(err)
	}
	return cert
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func write(tb testing.TB, path, kind string, der []byte) {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Client is a client's configuration that trusts the authority alone, and shows an identity.
func (a *Authority) Client(id Identity) *tls.Config {
	return &tls.Config{RootCAs: a.Pool(), ServerName: "localhost", Certificates: []tls.Certificate{id.Pair}}
}
