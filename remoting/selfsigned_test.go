package remoting

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"
)

// TestIdentity: the certificate can be checked by whoever has it, is told apart from its key, and is warned of in time.
func TestIdentity(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	text, err := NewIdentity([]string{"mq.example.org", "192.0.2.7"}, now)
	if err != nil {
		t.Fatal(err)
	}
	if public := string(Certificates(text)); strings.Contains(public, "KEY") || !strings.HasSuffix(string(text), public) || strings.Count(public, "BEGIN") != 1 {
		t.Errorf("the certificate is\n%s", public)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		t.Fatal(err)
	}
	for day, want := range map[time.Time]string{
		now: "", now.AddDate(9, 10, 0): "", now.AddDate(9, 11, 15): "mq.example.org, valid until 2036-03-01T12:00:00Z",
		now.AddDate(11, 0, 0): "mq.example.org, valid until 2036-03-01T12:00:00Z", now.AddDate(0, 0, -1): "mq.example.org, valid from 2026-03-01T11:00:00Z",
	} {
		if got := soonOver([]tls.Certificate{pair}, day); got != want {
			t.Errorf("%v: %q, want %q", day, got, want)
		}
	}
	if got := soonOver([]tls.Certificate{{}}, now); got != "" {
		t.Errorf("a certificate without a leaf: %q", got)
	}
}
