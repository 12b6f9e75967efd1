package acl

import "strings"

// Permission is what an account may do with a topic or group; the bits are those of Permission in 4.9.8.
type Permission uint8

// The permissions. Deny wins over all others.
const (
	Deny Permission = 1
	Pub  Permission = 4
	Sub  Permission = 8
)

// ParsePermission reads DENY, PUB, SUB, PUB|SUB or SUB|PUB. Whatever else stands there is Deny and not known, as in
// 4.9.8.
func ParsePermission(text string) (p Permission, known bool) {
	switch strings.TrimSpace(text) {
	case "PUB":
		return Pub, true
	case "SUB":
		return Sub, true
	case "PUB|SUB", "SUB|PUB":
		return Pub | Sub, true
	case "DENY":
		return Deny, true
	}
	return Deny, false
}

// allows tells whether an owner of p may do what needs need.
func (p Permission) allows(need Permission) bool { return p&Deny == 0 && p&need != 0 }

// String is the word of the ACL file.
func (p Permission) String() string {
	switch {
	case p&Deny != 0:
		return "DENY"
	case p == Pub|Sub:
		return "PUB|SUB"
	case p == Pub:
		return "PUB"
	case p == Sub:
		return "SUB"
	}
	return "DENY"
}
