package acl

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Pattern is a set of peer addresses as the white lists of an ACL file write it:
//
//	(empty)                          no address
//	*  *.*.*.*  *:*:*:*:*:*:*:*      every address
//	10.1.2.3  fe80::1                one
//	10.1.2.3,10.1.2.4,fe80::1        these
//	10.1.2.{3,4}  fe80::{1,2}        these
//	10.1.2.*  10.1.*.*  10.1.2.1-20  10.1.1-20.*  each part in its range
//	fe80::1:*  fe80::1-20  fe80::1-20:*           each group in its range
//
// An IPv6 pattern with a range, without "::" and with fewer than 8 groups is a prefix. An IPv4 address in IPv6 form
// is the IPv4 address.
//
// compat: the official patterns with a range look at the first range and the parts before it only: 10.1.1-20.7 lets in
// 10.1.5.99 there.
type Pattern struct {
	text  string
	every bool
	one   map[netip.Addr]bool
	parts []span // of the first octets or groups; none = no ranges
	ipv6  bool   // parts are groups
}

// span is a range of values of an octet or group, both ends included.
type span struct{ low, high uint16 }

// badAddress and badRange carry the official texts.
func badAddress(text string) error {
	//lint:ignore ST1005 the official text
	return fmt.Errorf("Netaddress examine Exception netaddress is %s", text)
}

func badRange(text string) error {
	//lint:ignore ST1005 the official text
	return fmt.Errorf("Netaddress examine scope Exception netaddress is %s", text)
}

// ParsePattern reads a pattern. The error has the official text.
func ParsePattern(text string) (Pattern, error) {
	p := Pattern{text: text}
	s := strings.TrimSpace(text)
	switch {
	case s == "":
		return p, nil
	case s == "*" || s == "*.*.*.*" || s == "*:*:*:*:*:*:*:*":
		p.every = true
		return p, nil
	case strings.HasSuffix(s, "}"):
		head, list, ok := strings.Cut(strings.TrimSuffix(s, "}"), "{")
		if !ok || head == "" || head[len(head)-1] != '.' && head[len(head)-1] != ':' {
			return p, badAddress(text)
		}
		return p, p.add(text, head, strings.Split(list, ","))
	case strings.Contains(s, ","):
		return p, p.add(text, "", strings.Split(s, ","))
	case strings.ContainsAny(s, "*-"):
		return p, p.ranges(text, s)
	}
	return p, p.add(text, "", []string{s})
}

// add adds single addresses: head with each of tails.
func (p *Pattern) add(text, head string, tails []string) error {
	p.one = make(map[netip.Addr]bool, len(tails))
	for _, tail := range tails {
		if strings.TrimSpace(tail) == "" {
			continue // as StringUtils.split
		}
		a, err := netip.ParseAddr(head + strings.TrimSpace(tail))
		if err != nil || a.Zone() != "" {
			return badAddress(text)
		}
		p.one[a.Unmap()] = true
	}
	return nil
}

// ranges reads a pattern with * or a range.
func (p *Pattern) ranges(text, s string) error {
	parts, size := strings.Split(s, "."), 4
	base, limit := 10, uint64(255)
	if p.ipv6 = strings.Contains(s, ":"); p.ipv6 {
		base, limit, size = 16, 0xffff, 8
		if parts = expand(s); parts == nil {
			return badRange(text)
		}
	} else if len(parts) != size {
		return badRange(text)
	}
	if len(parts) > size {
		return badRange(text)
	}
	ranged := false
	for i, part := range parts {
		span, isRange, ok := parseSpan(strings.TrimSpace(part), base, limit)
		if !ok || i == 0 && isRange || ranged && !isRange && p.ipv6 {
			return badRange(text)
		}
		ranged = ranged || isRange
		p.parts = append(p.parts, span)
	}
	return nil
}

// expand parts an IPv6 pattern into its groups, with "::" written out; nil when that can't be.
func expand(s string) []string {
	head, tail, short := strings.Cut(s, "::")
	if !short {
		return strings.Split(s, ":")
	}
	var groups []string
	if head != "" {
		groups = strings.Split(head, ":")
	}
	var last []string
	if tail != "" {
		last = strings.Split(tail, ":")
	}
	missing := 8 - len(groups) - len(last)
	if missing < 1 {
		return nil
	}
	for range missing {
		groups = append(groups, "0")
	}
	return append(groups, last...)
}

// parseSpan reads a number, a range or *.
func parseSpan(s string, base int, limit uint64) (sp span, isRange, ok bool) {
	if s == "*" {
		return span{0, uint16(limit)}, true, true
	}
	lowText, highText, isRange := strings.Cut(s, "-")
	if !isRange {
		highText = lowText
	}
	low, err := strconv.ParseUint(strings.TrimSpace(lowText), base, 16)
	if err != nil {
		return sp, isRange, false
	}
	high, err := strconv.ParseUint(strings.TrimSpace(highText), base, 16)
	if err != nil || low > high || high > limit {
		return sp, isRange, false
	}
	return span{uint16(low), uint16(high)}, isRange, true
}

// String is the pattern as it was written.
func (p *Pattern) String() string { return p.text }

// Matches tells whether a is one of the addresses.
func (p *Pattern) Matches(a netip.Addr) bool {
	switch {
	case p.every:
		return true
	case p.one == nil && p.parts == nil:
		return false
	}
	a = a.Unmap().WithZone("")
	if p.one != nil {
		return p.one[a]
	}
	if p.ipv6 {
		if !a.Is6() {
			return false
		}
		b := a.As16()
		for i, s := range p.parts {
			if v := uint16(b[2*i])<<8 | uint16(b[2*i+1]); v < s.low || v > s.high {
				return false
			}
		}
		return true
	}
	if !a.Is4() {
		return false
	}
	b := a.As4()
	for i, s := range p.parts {
		if v := uint16(b[i]); v < s.low || v > s.high {
			return false
		}
	}
	return true
}
