package acl

import (
	"net/netip"
	"strings"
	"testing"
)

// TestPattern: forms and their meaning from RemoteAddressStrategyFactory of 4.9.8.
func TestPattern(t *testing.T) {
	for pattern, tt := range map[string]struct{ yes, no string }{
		"":                           {"", "127.0.0.1 ::1"},
		" ":                          {"", "127.0.0.1"},
		"*":                          {"1.2.3.4 ::1", ""},
		"*.*.*.*":                    {"1.2.3.4 ::1", ""},
		"*:*:*:*:*:*:*:*":            {"1.2.3.4 ::1", ""},
		"127.0.0.1":                  {"127.0.0.1 ::ffff:127.0.0.1", "127.0.0.2 ::1"},
		"127.0.0.1,127.0.0.2":        {"127.0.0.1 127.0.0.2", "127.0.0.3"},
		"127.0.0.1, 127.0.0.2":       {"127.0.0.2", "127.0.0.3"},
		"127.0.0.{1,2,3}":            {"127.0.0.1 127.0.0.3", "127.0.0.4 127.0.0.0 127.0.1.1"},
		"127.0.0.1-200":              {"127.0.0.1 127.0.0.200", "127.0.0.0 127.0.0.201 127.0.1.7"},
		"127.0.0.*":                  {"127.0.0.0 127.0.0.255", "127.0.1.1 ::1"},
		"127.0.1-20.*":               {"127.0.1.9 127.0.20.255", "127.0.0.9 127.0.21.9 127.1.1.1"},
		"127.*.*.*":                  {"127.255.9.1", "128.0.0.1"},
		"127.1-150.*.*":              {"127.150.0.1", "127.151.0.1 127.0.0.1"},
		"10.1.1-20.7":                {"10.1.5.7", "10.1.5.99 10.1.21.7"}, // the official pattern lets 10.1.5.99 in
		"10.1.0-0.*":                 {"10.1.0.5", "10.1.1.5"},
		"::1":                        {"::1 0:0:0:0:0:0:0:1", "::2 127.0.0.1"},
		"1050::5:600:300c:{1,a}":     {"1050:0:0:0:5:600:300c:1 1050::5:600:300c:000A", "1050::5:600:300c:2"},
		"1050::5:600:300c:1,::1":     {"1050::5:600:300c:1 ::1", "1050::5:600:300c:2"},
		"1050::0005:0600:300c:1-200": {"1050::5:600:300c:1 1050::5:600:300c:200", "1050::5:600:300c:201 1050::5:600:300d:1"},
		"1050::5:600:300c:*":         {"1050::5:600:300c:ffff", "1050::5:600:300d:1 10.5.0.1"},
		"1050::5:600:300c:1-200:*":   {"1050:0:0:5:600:300c:1:9", "1050:0:0:5:600:300c:201:9 1050:0:0:5:600:300d:1:9"},
		"1050:0005:0600:300c:3261:*": {"1050:5:600:300c:3261:1:2:3", "1050:5:600:300c:3262:1:2:3"},
		"FE80::1":                    {"fe80::1", "fe80::2"},
		"10.0.0.1,":                  {"10.0.0.1", "10.0.0.2"},
	} {
		p, err := ParsePattern(pattern)
		if err != nil {
			t.Errorf("%q: %v", pattern, err)
			continue
		}
		for _, a := range strings.Fields(tt.yes) {
			if !p.Matches(netip.MustParseAddr(a)) {
				t.Errorf("%q does not match %s", pattern, a)
			}
		}
		for _, a := range strings.Fields(tt.no) {
			if p.Matches(netip.MustParseAddr(a)) {
				t.Errorf("%q matches %s", pattern, a)
			}
		}
	}
	for _, pattern := range []string{
		"256.0.0.1", "::1ggg", "127.0.0.1,2,3}", "::1,2,3}", "192.168.{1}", "{192.168.1}", "{192.168.1.1}", "127.0.0.2-1", "127.0.0.-1-200",
		"127.0.0.0-256", "127.0.*", "*.0.0.1", "10.1.*.*.*", "localhost", "10.0.0.0/8", "fe80::1%eth0", "1:2:3:4:5:6:7:8:*", "1:*:3:4:5:6:7:8",
		"1-2::1", "127.0.0.1x", "1.2.3.{4", "::*:1", "1::2::*",
	} {
		if p, err := ParsePattern(pattern); err == nil {
			t.Errorf("%q is taken: %+v", pattern, p)
		} else if !strings.HasSuffix(err.Error(), "netaddress is "+pattern) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// FuzzPattern: no text makes a pattern that panics, or one for everybody unless it says so.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"", "*", "10.1.1-20.*", "1050::5:600:300c:1-200:*", "127.0.0.{1,2}", "a,b", "::{1}", "-", "}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePattern(text)
		if err != nil {
			return
		}
		all := p.Matches(netip.MustParseAddr("203.0.113.7")) && p.Matches(netip.MustParseAddr("2001:db8::7")) &&
			p.Matches(netip.MustParseAddr("9.8.7.6")) && p.Matches(netip.MustParseAddr("ff02::1"))
		if all && !p.every {
			t.Errorf("%q matches everything", text)
		}
	})
}
