package acl

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The keys of an ACL file (AclConstants of 4.9.8).
const (
	keyGlobal       = "globalWhiteRemoteAddresses"
	keyAccounts     = "accounts"
	keyVersion      = "dataVersion"
	keyAccessKey    = "accessKey"
	keySecretKey    = "secretKey"
	keyWhite        = "whiteRemoteAddress"
	keyAdmin        = "admin"
	keyDefaultTopic = "defaultTopicPerm"
	keyDefaultGroup = "defaultGroupPerm"
	keyTopics       = "topicPerms"
	keyGroups       = "groupPerms"
	keyCounter      = "counter"
	keyTimestamp    = "timestamp"
)

// follow goes from an alias to what it names.
func follow(n *yaml.Node) *yaml.Node {
	for i := 0; n.Kind == yaml.AliasNode && n.Alias != nil && i < 8; i++ {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && isPlain(n) && (n.Value == "" || n.Value == "~" || strings.EqualFold(n.Value, "null"))
}

func isPlain(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

// What YAML 1.1 takes for something else than text when it is not quoted (Resolver of SnakeYAML).
var (
	plainInt   = regexp.MustCompile(`^[-+]?(0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$`)
	plainOther = regexp.MustCompile(`^([-+]?[1-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?` + // sexagesimal
		`|[-+]?([0-9][0-9_]*)?\.[0-9_]*([eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)` + // floats
		`|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?` + // times
		`|yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)
)

// text is a scalar as the official broker's text of it: SnakeYAML makes numbers of what looks like one, and fastjson
// text of these again, so 0o17 stays and 017 becomes 15. What becomes a float, a time or a boolean on the way is
// refused with the advice to quote it; nothing the official broker lets in is let in by another name.
func (f *file) text(n *yaml.Node, key string) (string, error) {
	switch {
	case n.Kind != yaml.ScalarNode:
		return "", f.bad(n, "%s wants a text", key)
	case isNull(n):
		return "", nil
	case !isPlain(n) || n.Style&yaml.TaggedStyle != 0:
		return n.Value, nil
	case plainInt.MatchString(n.Value):
		return javaInt(n.Value), nil
	case plainOther.MatchString(n.Value):
		return "", f.bad(n, "the value of %s is no text but a number, a time or a boolean for YAML: put it in quotes", key)
	}
	return n.Value, nil
}

// javaInt writes an integer of YAML 1.1 in decimals.
func javaInt(s string) string {
	digits, negative := strings.ReplaceAll(strings.TrimPrefix(s, "+"), "_", ""), false
	digits, negative = strings.CutPrefix(digits, "-")
	base := 10
	switch {
	case strings.HasPrefix(digits, "0b"):
		digits, base = digits[2:], 2
	case strings.HasPrefix(digits, "0x"):
		digits, base = digits[2:], 16
	case len(digits) > 1 && digits[0] == '0':
		digits, base = digits[1:], 8
	}
	v, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return s
	}
	if negative {
		v.Neg(v)
	}
	return v.String()
}

// boolean reads a boolean of YAML 1.1, quoted or not; nothing is false.
func (f *file) boolean(n *yaml.Node) (bool, error) {
	if n.Kind == yaml.ScalarNode {
		switch strings.ToLower(n.Value) {
		case "true", "yes", "on":
			return true, nil
		case "false", "no", "off", "", "~", "null":
			return false, nil
		}
	}
	return false, f.bad(n, "admin wants true or false")
}

func (f *file) number(n *yaml.Node, key string) (int64, error) {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil {
		return 0, f.bad(n, "%s wants a number", key)
	}
	return v, nil
}

// list hands the items of a list to read; nothing is an empty list.
func (f *file) list(n *yaml.Node, key string, read func(*yaml.Node) error) error {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return f.bad(n, "%s wants a list", key)
	}
	for _, item := range n.Content {
		if err := f.count(item); err != nil {
			return err
		}
		if err := read(follow(item)); err != nil {
			return err
		}
	}
	return nil
}
