package broker

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sort"
	"strings"
	"time"
)

// advertised is the address that clients are told, and where it came from.
type advertised struct {
	Host   string     // as told: an IP or a name
	IP     netip.Addr // what Host means here; it becomes the store host and part of every offset message id
	Source string     // for the log
	Local  bool       // only this machine can reach it
}

// addressEnv is the environment variable that names the address when broker.conf does not: a container's
// entry point knows it, the container's interfaces don't.
const addressEnv = "BROKER_IP1"

// advertise chooses the address: brokerIP1, else BROKER_IP1 of the environment, else the best address of an
// interface.
func advertise(brokerIP1 string) (advertised, error) {
	if h := strings.TrimSpace(brokerIP1); h != "" {
		return named(h, "brokerIP1")
	}
	if h := strings.TrimSpace(os.Getenv(addressEnv)); h != "" {
		return named(h, "environment variable "+addressEnv)
	}
	ifaces, err := interfaces()
	if err != nil {
		return advertised{}, fmt.Errorf("the machine's addresses can't be listed (set brokerIP1 in the configuration): %w", err)
	}
	return choose(ifaces), nil
}

// named resolves an address that was given; a name stays a name for clients.
func named(host, source string) (advertised, error) {
	ip, err := resolve(host)
	if err != nil {
		return advertised{}, fmt.Errorf("%s is %q, which is no IP address and can't be resolved; set it to an address of this machine that clients can reach: %w", source, host, err)
	}
	if ip.IsUnspecified() {
		return advertised{}, fmt.Errorf("%s is %s, which no client can connect to; set it to an address of this machine that clients can reach", source, host)
	}
	return advertised{Host: host, IP: ip, Source: source, Local: isLocal(ip)}, nil
}

// resolve turns an IP or a name into an IP, IPv4 before IPv6.
func resolve(host string) (netip.Addr, error) {
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ip.Unmap(), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, ip := range ips {
		if ip.Unmap().Is4() {
			return ip.Unmap(), nil
		}
	}
	return ips[0].WithZone(""), nil
}

// iface is one address of one interface.
type iface struct {
	Name string
	IP   netip.Addr
}

func interfaces() ([]iface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var found []iface
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				if ip, ok := netip.AddrFromSlice(n.IP); ok {
					found = append(found, iface{i.Name, ip.Unmap()})
				}
			}
		}
	}
	return found, nil
}

// choose picks the address that clients on other machines most likely reach: IPv4 before IPv6, bridges of
// containers and virtual machines after all others, link-local and loopback last.
func choose(all []iface) advertised {
	rank := func(i iface) int {
		switch {
		case i.IP.IsLoopback():
			return 5
		case i.IP.IsLinkLocalUnicast():
			return 4
		case i.IP.Is6():
			return 3
		case isBridge(i.Name):
			return 2
		}
		return 1
	}
	sorted := append([]iface(nil), all...)
	sort.SliceStable(sorted, func(a, b int) bool { return rank(sorted[a]) < rank(sorted[b]) })
	if len(sorted) == 0 {
		sorted = []iface{{"lo", netip.AddrFrom4([4]byte{127, 0, 0, 1})}}
	}
	i := sorted[0]
	return advertised{Host: i.IP.String(), IP: i.IP, Source: "interface " + i.Name, Local: isLocal(i.IP)}
}

// isBridge tells whether an interface usually leads to containers or virtual machines of this host only.
func isBridge(name string) bool {
	for _, p := range []string{"docker", "br-", "veth", "virbr", "cni", "flannel", "cali", "podman", "lxc", "lxd", "vmnet", "vboxnet"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

func isLocal(ip netip.Addr) bool { return ip.IsLoopback() || ip.IsLinkLocalUnicast() }

// hostPort joins host and port as the wire has it: an IPv6 address in brackets.
func hostPort(host string, port int) string {
	return net.JoinHostPort(strings.Trim(host, "[]"), fmt.Sprint(port))
}

// localHostName is the default of brokerName.
func localHostName() string {
	if h, err := os.Hostname(); err == nil && h != "" {
		return h
	}
	return DefaultBrokerName
}
