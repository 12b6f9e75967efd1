package broker

import (
	"net/netip"
	"testing"
)

func TestChooseAddress(t *testing.T) {
	on := func(name, ip string) iface { return iface{name, netip.MustParseAddr(ip)} }
	for _, tt := range []struct {
		name  string
		have  []iface
		want  string
		local bool
	}{
		{"first real IPv4", []iface{on("lo", "127.0.0.1"), on("docker0", "172.17.0.1"), on("eth0", "192.168.1.5"), on("eth1", "10.0.0.5")}, "192.168.1.5", false},
		{"a bridge when there is nothing else", []iface{on("lo", "127.0.0.1"), on("br-1a2b", "172.18.0.1"), on("lo", "::1")}, "172.18.0.1", false},
		{"IPv4 of a bridge before IPv6", []iface{on("eth0", "2001:db8::5"), on("virbr0", "192.168.122.1")}, "192.168.122.1", false},
		{"IPv6", []iface{on("lo", "::1"), on("eth0", "fe80::1"), on("eth0", "2001:db8::5")}, "2001:db8::5", false},
		{"link-local before loopback", []iface{on("lo", "127.0.0.1"), on("eth0", "169.254.3.4")}, "169.254.3.4", true},
		{"loopback alone", []iface{on("lo", "127.0.0.1")}, "127.0.0.1", true},
		{"nothing", nil, "127.0.0.1", true},
	} {
		got := choose(tt.have)
		if got.Host != tt.want || got.Local != tt.local || got.IP != netip.MustParseAddr(tt.want) {
			t.Errorf("%s: %+v, want %s, local %v", tt.name, got, tt.want, tt.local)
		}
	}
}

func TestAdvertise(t *testing.T) {
	t.Setenv(addressEnv, "")
	for host, want := range map[string]string{" 10.1.2.3 ": "10.1.2.3", "localhost": "127.0.0.1", "[2001:db8::5]": "2001:db8::5"} {
		got, err := advertise(host)
		if err != nil || got.IP.String() != want || got.Source != "brokerIP1" {
			t.Errorf("%q: %+v, %v; want %s", host, got, err, want)
		}
	}
	if got, err := advertise("localhost"); err != nil || got.Host != "localhost" || !got.Local {
		t.Errorf("a name does not stay one: %+v, %v", got, err)
	}
	for _, host := range []string{"0.0.0.0", "::", "no.such.host.invalid", "a b"} {
		if got, err := advertise(host); err == nil {
			t.Errorf("%q: %+v, want an error", host, got)
		}
	}
	t.Setenv(addressEnv, "10.9.8.7")
	if got, err := advertise(""); err != nil || got.Host != "10.9.8.7" {
		t.Errorf("from the environment: %+v, %v", got, err)
	}
	if got, err := advertise("10.1.2.3"); err != nil || got.Host != "10.1.2.3" {
		t.Errorf("the configuration goes before the environment: %+v, %v", got, err)
	}
}

func TestHostPort(t *testing.T) {
	for host, want := range map[string]string{"10.0.0.1": "10.0.0.1:10911", "name": "name:10911", "2001:db8::5": "[2001:db8::5]:10911"} {
		if got := hostPort(host, 10911); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}
