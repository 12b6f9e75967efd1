package acl

import (
	"fmt"
	"log/slog"
	"strings"

	"rocketd/protocol/message"
)

// retryPrefix begins the retry topic of a group; group permissions are kept under its name in 4.9.8.
const retryPrefix = "%RETRY%"

// minKeyLength is the length that access keys and secret keys must have at least, in UTF-16 units.
const minKeyLength = 7

// Account is one account of an ACL file. It never changes. Its secret key can't be read from it.
type Account struct {
	AccessKey string
	Admin     bool
	Place     Place // where it is defined

	white        Pattern
	defaultTopic Permission
	defaultGroup Permission
	topics       map[string]Permission
	groups       map[string]Permission
	key          signingKey
}

// Place is a place in a file; Column 0 = the whole line, Line 0 = the whole file.
type Place struct {
	Path         string
	Line, Column int
}

// String is path:line:column.
func (p Place) String() string {
	switch {
	case p.Line == 0:
		return p.Path
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.Path, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.Path, p.Line, p.Column)
}

// LogValue keeps everything but the name out of logs.
func (a *Account) LogValue() slog.Value { return slog.StringValue(a.AccessKey) }

// all tells whether the account may do everything: an administrator without permissions of its own.
func (a *Account) all() bool { return a.Admin && len(a.topics) == 0 && len(a.groups) == 0 }

// permission is what the account may do with r, and whether that is written for r or the default. Topics in which the
// broker keeps messages of others, such as SCHEDULE_TOPIC_XXXX, have no default.
func (a *Account) permission(r Resource) (p Permission, listed bool) {
	table, fallback := a.topics, a.defaultTopic
	if r.Group {
		table, fallback = a.groups, a.defaultGroup
	}
	if p, listed = table[r.Name]; listed {
		return p, true
	}
	if !r.Group && message.HoldsOthers(r.Name) { // compat: officially the default counts, and opens what is denied by name
		return Deny, false
	}
	return fallback, false
}

// grant notes what the account may do with a topic, or with the group whose retry topic it is.
func (a *Account) grant(r Resource, p Permission) {
	table := &a.topics
	if r.Group {
		table = &a.groups
	}
	if *table == nil {
		*table = make(map[string]Permission)
	}
	(*table)[r.Name] = p
}

// Resource is a topic or a group, and what is wanted of it.
type Resource struct {
	Name  string
	Group bool
	Need  Permission
}

// TopicResource is a topic and what is wanted of it, or the group whose retry topic it is.
func TopicResource(topic string, need Permission) Resource {
	if group, ok := strings.CutPrefix(topic, retryPrefix); ok {
		return Resource{Name: group, Group: true, Need: Sub}
	}
	return Resource{Name: topic, Need: need}
}

// String is topic:NAME or group:NAME, as the official remarks have it.
func (r Resource) String() string {
	if r.Group {
		return "group:" + r.Name
	}
	return "topic:" + r.Name
}

// cutPermission parts name=PERMISSION as StringUtils.split: empty parts do not count.
func cutPermission(text string) (name, permission string, ok bool) {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == '=' })
	if len(parts) != 2 {
		return "", "", false
	}
	return strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1]), true
}
