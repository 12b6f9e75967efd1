package admin

import (
	"fmt"
	"net/netip"
	"strings"
)

// Loopback are the networks of this machine alone.
const Loopback = "127.0.0.0/8,::1/128"

// networks are those that may administrate; none = all may.
type networks []netip.Prefix

// parseNetworks reads a list of networks (CIDR) and single addresses with commas, semicolons or spaces between.
func parseNetworks(list string) (all networks, err error) {
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(",; \t", r) }) {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			addr, aerr := netip.ParseAddr(text)
			if aerr != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("%s is neither a network like 10.1.0.0/16 nor an address", text)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		if p.Addr().Is4In6() {
			return nil, fmt.Errorf("%s: write an IPv4 network in its own form", text)
		}
		if p.Masked() != p {
			return nil, fmt.Errorf("%s has bits behind the first %d; write %v", text, p.Bits(), p.Masked())
		}
		all = append(all, p)
	}
	return all, nil
}

// Has tells whether a value of adminAllowedNetworks has an address.
func Has(list string, addr netip.Addr) (bool, error) {
	n, err := parseNetworks(list)
	if err != nil {
		return false, &keyError{"adminAllowedNetworks", err}
	}
	return n.has(addr), nil
}

// has tells whether an address may administrate.
func (n networks) has(addr netip.Addr) bool {
	if len(n) == 0 {
		return true
	}
	addr = addr.Unmap().WithZone("")
	for _, p := range n {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
