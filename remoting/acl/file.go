package acl

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"go.yaml.in/yaml/v4"

	"rocketd/compat"
)

// maxWarnings is how many warnings of one file are told.
const maxWarnings = 100

// Version is the dataVersion of an ACL file: how often requests have changed it, and when last (ms since 1970).
type Version struct {
	Counter   int64 `json:"counter"`
	Timestamp int64 `json:"timestamp"`
}

// file is an ACL file, read: as its author wrote it, and what it means.
type file struct {
	path     string
	data     bool // the file has any
	global   []Pattern
	accounts []*Account // in the order of the file, of one key only the first
	version  *Version   // nil = the file has none
	warnings []warning
	values   int // keys and items that were read
}

// warning is something in a file that is probably not meant.
type warning struct {
	place Place
	text  string
}

// FileError is why an ACL file can't be used. It never holds a secret.
type FileError struct {
	Place  Place
	Reason string
}

// Error implements error.
func (e *FileError) Error() string { return e.Place.String() + ": " + e.Reason }

// parse reads the text of an ACL file. Every error is a *FileError.
func parse(path string, data []byte) (*file, error) {
	f, _, err := parseDocument(path, data)
	return f, err
}

// parseDocument is parse, with the document itself for who wants to change it; nil = the file has no data.
func parseDocument(path string, data []byte) (*file, *yaml.Node, error) {
	f := &file{path: path}
	document, err := compose(path, data)
	if err != nil {
		return nil, nil, err
	}
	if document == nil {
		return f, nil, nil
	}
	root := follow(document.Content[0])
	if isNull(root) {
		return f, nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, nil, f.bad(root, "the file must be a mapping of globalWhiteRemoteAddresses, accounts and dataVersion")
	}
	f.data = true
	return f, document, f.read(root)
}

// syntaxError makes an error of what the YAML library says. What it quotes from the file is left out: it may be a
// secret.
func syntaxError(path string, data []byte, err error) error {
	place, reason := Place{Path: path}, "no YAML"
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		place.Line, place.Column = e.Mark.Line, e.Mark.Column
		reason = e.Message
	}
	if i := strings.IndexAny(reason, "'\"`"); i >= 0 && !strings.HasPrefix(reason, "did not find expected ") { // signs of YAML are no secret
		reason = strings.TrimSpace(reason[:i]) + " …"
	}
	if place.Line == 0 {
		if i := bytes.IndexFunc(data, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f }); i >= 0 {
			place.Line = 1 + bytes.Count(data[:i], []byte("\n"))
			place.Column = i - bytes.LastIndexByte(data[:i], '\n')
		}
	}
	return &FileError{place, reason}
}

func (f *file) place(n *yaml.Node) Place { return Place{f.path, n.Line, n.Column} }

func (f *file) bad(n *yaml.Node, format string, args ...any) error {
	return &FileError{f.place(n), fmt.Sprintf(format, args...)}
}

func (f *file) warn(n *yaml.Node, format string, args ...any) {
	if len(f.warnings) == maxWarnings {
		return
	}
	f.warnings = append(f.warnings, warning{f.place(n), fmt.Sprintf(format, args...)})
}

// count counts a key or an item.
func (f *file) count(n *yaml.Node) error {
	if f.values++; f.values > maxValues {
		return f.bad(n, "the file has more than %d keys and items, those behind an alias counted each time", maxValues)
	}
	return nil
}

// read takes the meaning from the root of a file.
func (f *file) read(root *yaml.Node) error {
	return f.each(root, map[string]func(*yaml.Node) error{
		keyGlobal:   f.readGlobal,
		keyAccounts: f.readAccounts,
		keyVersion:  f.readVersion,
	})
}

// each hands the values of a mapping to whoever reads their keys. Other keys get a warning.
func (f *file) each(n *yaml.Node, readers map[string]func(*yaml.Node) error) error {
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := follow(n.Content[i])
		if err := f.count(key); err != nil {
			return err
		}
		read := readers[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || read == nil:
			if near := compat.Nearest(key.Value, slices.Sorted(maps.Keys(readers))); key.Kind == yaml.ScalarNode && near != "" {
				f.warn(key, "a key without a meaning here; it is ignored. Perhaps %s was meant", near)
			} else { // what stands there may be a secret
				f.warn(key, "a key without a meaning here; it is ignored")
			}
			continue
		case seen[key.Value]:
			return f.bad(key, "%s is there twice", key.Value)
		}
		seen[key.Value] = true
		if err := read(follow(n.Content[i+1])); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) readGlobal(n *yaml.Node) error {
	return f.list(n, keyGlobal, func(n *yaml.Node) error {
		text, err := f.text(n, keyGlobal)
		if err != nil {
			return err
		}
		p, err := ParsePattern(text)
		if err != nil {
			return f.bad(n, "%v", err)
		}
		if p.every {
			f.warn(n, "%s in the global white list lets everybody in without a key", text)
		}
		f.global = append(f.global, p)
		return nil
	})
}

func (f *file) readAccounts(n *yaml.Node) error {
	seen := make(map[string]bool)
	return f.list(n, keyAccounts, func(n *yaml.Node) error {
		if n.Kind != yaml.MappingNode {
			return f.bad(n, "an account must be a mapping with accessKey and secretKey")
		}
		a, err := f.readAccount(n)
		if err != nil {
			return err
		}
		if seen[a.AccessKey] {
			f.warn(n, "the accessKey %s is there twice; its first account counts", a.AccessKey)
			return nil
		}
		seen[a.AccessKey] = true
		f.accounts = append(f.accounts, a)
		return nil
	})
}

// readAccount reads one account: PlainPermissionManager#buildPlainAccessResource of 4.9.8.
func (f *file) readAccount(n *yaml.Node) (*Account, error) {
	a := &Account{Place: Place{f.path, n.Line, 0}, defaultTopic: Deny, defaultGroup: Deny}
	var secret string
	var topics, groups []grantLine
	text := func(key string, into *string) func(*yaml.Node) error {
		return func(n *yaml.Node) (err error) {
			*into, err = f.text(n, key)
			return err
		}
	}
	fallback := func(key string, into *Permission) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			value, err := f.text(n, key)
			if err != nil || value == "" {
				return err
			}
			known := false
			if *into, known = ParsePermission(value); !known {
				f.warn(n, "%s is none of DENY, PUB, SUB, PUB|SUB: it counts as DENY", key)
			}
			return nil
		}
	}
	err := f.each(n, map[string]func(*yaml.Node) error{
		keyAccessKey: text(keyAccessKey, &a.AccessKey),
		keySecretKey: text(keySecretKey, &secret),
		keyWhite: func(n *yaml.Node) error {
			value, err := f.text(n, keyWhite)
			if err != nil {
				return err
			}
			if a.white, err = ParsePattern(value); err != nil {
				return f.bad(n, "%v", err)
			}
			return nil
		},
		keyAdmin: func(n *yaml.Node) (err error) {
			a.Admin, err = f.boolean(n)
			return err
		},
		keyDefaultTopic: fallback(keyDefaultTopic, &a.defaultTopic),
		keyDefaultGroup: fallback(keyDefaultGroup, &a.defaultGroup),
		keyTopics:       f.grants(keyTopics, &topics),
		keyGroups:       f.grants(keyGroups, &groups),
	})
	if err != nil {
		return nil, err
	}
	if err := checkKeys(a.AccessKey, secret); err != nil {
		return nil, f.bad(n, "%v%s", err, whichKey(a.AccessKey, secret))
	}
	a.key = newSigningKey(secret)
	for _, g := range groups {
		a.grant(Resource{Name: g.name, Group: true}, g.permission)
	}
	for _, t := range topics {
		a.grant(TopicResource(t.name, 0), t.permission)
	}
	return a, nil
}

// grantLine is one name=PERMISSION.
type grantLine struct {
	name       string
	permission Permission
}

// grants reads a list of name=PERMISSION.
func (f *file) grants(key string, into *[]grantLine) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		return f.list(n, key, func(n *yaml.Node) error {
			line, err := f.text(n, key)
			if err != nil {
				return err
			}
			name, word, ok := cutPermission(line)
			if !ok {
				return f.bad(n, "%s wants name=PERMISSION", key)
			}
			p, known := ParsePermission(word)
			if !known {
				f.warn(n, "%s is none of DENY, PUB, SUB, PUB|SUB: it counts as DENY", word)
			}
			*into = append(*into, grantLine{name, p})
			return nil
		})
	}
}

func (f *file) readVersion(n *yaml.Node) error {
	return f.list(n, keyVersion, func(n *yaml.Node) error {
		if n.Kind != yaml.MappingNode {
			return f.bad(n, "dataVersion wants counter and timestamp")
		}
		v := new(Version)
		err := f.each(n, map[string]func(*yaml.Node) error{
			keyCounter:   func(n *yaml.Node) (err error) { v.Counter, err = f.number(n, keyCounter); return err },
			keyTimestamp: func(n *yaml.Node) (err error) { v.Timestamp, err = f.number(n, keyTimestamp); return err },
			"stateVersion": func(n *yaml.Node) error { // 5.x writes it too
				return nil
			},
		})
		if err == nil && f.version == nil {
			f.version = v
		}
		return err
	})
}

// checkKeys refuses keys that are too short. The official text shows the secret; here it does not.
func checkKeys(accessKey, secret string) error {
	if javaLength(accessKey) >= minKeyLength && javaLength(secret) >= minKeyLength {
		return nil
	}
	shown := "null"
	if secret != "" {
		shown = "******"
	}
	if accessKey == "" {
		accessKey = "null"
	}
	//lint:ignore ST1005 the official text
	return fmt.Errorf("The accessKey=%s and secretKey=%s cannot be null and length should longer than 6", accessKey, shown)
}

// whichKey tells the author of a file which of the keys checkKeys means, which the official text leaves open.
func whichKey(accessKey, secret string) string {
	for _, k := range []struct{ name, value string }{{keyAccessKey, accessKey}, {keySecretKey, secret}} {
		switch n := javaLength(k.value); {
		case n == 0:
			return fmt.Sprintf(" (there is no %s)", k.name)
		case n < minKeyLength:
			return fmt.Sprintf(" (the %s has %d characters; give it %d or more)", k.name, n, minKeyLength)
		}
	}
	return ""
}

// javaLength is String#length.
func javaLength(s string) (n int) {
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}
