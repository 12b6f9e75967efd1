package remoting

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// template is what certificates have in common that a server signs for itself.
func template(name string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, nil
}

// selfSigned makes the certificate of the test mode, which nobody can check; it is never written to disk.
func selfSigned() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t, err := template("localhost")
	if err != nil {
		return nil, err
	}
	t.DNSNames = []string{"localhost"}
	t.NotBefore, t.NotAfter = time.Now().AddDate(-1, 0, 0), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// identityYears is how long a certificate of NewIdentity counts.
const identityYears = 10

// NewIdentity makes a key and a certificate for it that it signs itself, for hosts (names and addresses; the first is its name): the PEM
// text of both, which is a secret, for certPath and keyPath. Whoever has the certificate in trustCertPath can check it.
func NewIdentity(hosts []string, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t, err := template(hosts[0])
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	t.NotBefore, t.NotAfter = now.Add(-time.Hour), now.AddDate(identityYears, 0, 0)
	t.IsCA, t.BasicConstraintsValid = true, true // else Java does not take it for an anchor of trust
	t.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	text, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...), nil
}

// Certificates are the certificates of a PEM text, as PEM, without its keys.
func Certificates(text []byte) (certificates []byte) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return certificates
		}
		if block.Type == "CERTIFICATE" {
			certificates = append(certificates, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
}

// soonOverDays is how long before its end a certificate is warned of.
const soonOverDays = 30

// soonOver says of a certificate that ends soon, has ended, or has not begun, which one and when; "" = all are good.
func soonOver(certificates []tls.Certificate, now time.Time) string {
	for _, c := range certificates {
		switch leaf := c.Leaf; {
		case leaf == nil:
		case now.Before(leaf.NotBefore):
			return fmt.Sprintf("%s, valid from %s", leaf.Subject.CommonName, leaf.NotBefore.Format(time.RFC3339))
		case now.AddDate(0, 0, soonOverDays).After(leaf.NotAfter):
			return fmt.Sprintf("%s, valid until %s", leaf.Subject.CommonName, leaf.NotAfter.Format(time.RFC3339))
		}
	}
	return ""
}
