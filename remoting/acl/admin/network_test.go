package admin

import (
	"net/netip"
	"strings"
	"testing"
)

func TestNetworks(t *testing.T) {
	for _, tt := range []struct{ list, in, out string }{
		{"", "10.0.0.1 ::1 203.0.113.9", ""},
		{Loopback, "127.0.0.1 127.9.9.9 ::1 ::ffff:127.0.0.1", "10.0.0.1 128.0.0.1 ::2 fe80::1"},
		{"10.1.0.0/16; 192.168.7.9", "10.1.0.0 10.1.255.255 192.168.7.9 ::ffff:10.1.2.3", "10.2.0.0 192.168.7.8 ::1"},
		{"2001:db8::/32 fe80::/10", "2001:db8::7 fe80::1%eth0", "2001:db9::7 127.0.0.1"},
		{"0.0.0.0/0", "1.2.3.4", "::1"},
	} {
		n, err := parseNetworks(tt.list)
		if err != nil {
			t.Fatal(err)
		}
		for want, list := range map[bool]string{true: tt.in, false: tt.out} {
			for _, text := range strings.Fields(list) {
				if got := n.has(netip.MustParseAddr(text)); got != want {
					t.Errorf("%q has %s: %v", tt.list, text, got)
				}
			}
		}
	}
	for _, list := range []string{"10.0.0.1/8", "localhost", "10.0.0.0/33", "::ffff:10.0.0.0/104", "fe80::1%eth0", "10.1.*.*"} {
		if n, err := parseNetworks("127.0.0.1," + list); err == nil {
			t.Errorf("%q is taken for %v", list, n)
		} else if !strings.Contains(err.Error(), list) {
			t.Errorf("%q: the error does not name it: %v", list, err)
		}
	}
}
