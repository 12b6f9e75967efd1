package acl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Change is what UPDATE_AND_CREATE_ACL_CONFIG says of an account. Of an account that is there already a nil, or an empty
// SecretKey or default, keeps what the file has.
type Change struct {
	AccessKey, SecretKey               string
	WhiteRemoteAddress                 *string
	Admin                              bool
	DefaultTopicPerm, DefaultGroupPerm string
	TopicPerms, GroupPerms             []string
}

// check refuses a change that would leave a file that can't be used, with the official texts.
func (c *Change) check() error {
	if err := checkKeys(c.AccessKey, c.SecretKey); err != nil {
		return err
	}
	for _, lines := range [][]string{c.TopicPerms, c.GroupPerms} {
		for _, line := range lines {
			_, word, ok := cutPermission(line)
			if !ok {
				//lint:ignore ST1005 the official text
				return fmt.Errorf("Parse Resource format error for %s.\nThe expected resource format is 'Res=Perm'. For example: topicA=SUB", line)
			}
			if _, known := ParsePermission(word); !known {
				//lint:ignore ST1005 the official text
				return fmt.Errorf("Parse resource permission error for %s.\nThe expected permissions are 'SUB' or 'PUB' or 'SUB|PUB' or 'PUB|SUB'.", line)
			}
		}
	}
	if c.WhiteRemoteAddress != nil {
		if _, err := ParsePattern(*c.WhiteRemoteAddress); err != nil {
			return err
		}
	}
	return nil
}

// apply writes the change into an account's mapping.
func (c *Change) apply(account *yaml.Node) {
	set(account, keyAccessKey, quoted(c.AccessKey))
	set(account, keySecretKey, quoted(c.SecretKey))
	if c.WhiteRemoteAddress != nil {
		set(account, keyWhite, scalar(*c.WhiteRemoteAddress))
	}
	set(account, keyAdmin, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(c.Admin)})
	if c.DefaultTopicPerm != "" {
		set(account, keyDefaultTopic, scalar(c.DefaultTopicPerm))
	}
	if c.DefaultGroupPerm != "" {
		set(account, keyDefaultGroup, scalar(c.DefaultGroupPerm))
	}
	if c.TopicPerms != nil {
		set(account, keyTopics, sequence(c.TopicPerms))
	}
	if c.GroupPerms != nil {
		set(account, keyGroups, sequence(c.GroupPerms))
	}
}

// edited is a file's text after a change of its root; comments stay. The change is made on a document of its own.
func edited(path string, data []byte, now int64, change func(f *file, root *yaml.Node) error) ([]byte, error) {
	f, document, err := parseDocument(path, data)
	if err != nil {
		return nil, err
	}
	if document == nil {
		document = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}}
	}
	root := follow(document.Content[0])
	if err := change(f, root); err != nil {
		return nil, err
	}
	next := Version{Counter: 1, Timestamp: now}
	if f.version != nil {
		next.Counter = f.version.Counter + 1
	}
	entry := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	set(entry, keyCounter, integer(next.Counter))
	set(entry, keyTimestamp, integer(next.Timestamp))
	set(root, keyVersion, &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{entry}})
	text, err := yaml.Dump(document, yaml.WithV3Defaults(), yaml.WithIndent(2), yaml.WithCompactSeqIndent(), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, errors.New("the changed file can't be written as YAML")
	}
	if _, err := parse(path, text); err != nil {
		return nil, err
	}
	return text, nil
}

// update changes or adds an account.
func (c *Change) update(f *file, root *yaml.Node) error {
	accounts := get(root, keyAccounts)
	if accounts == nil || isNull(accounts) {
		accounts = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		set(root, keyAccounts, accounts)
	}
	for _, item := range accounts.Content {
		account := follow(item)
		if f.names(account, c.AccessKey) {
			c.apply(account)
			return nil
		}
	}
	account := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	c.apply(account)
	accounts.Style &^= yaml.FlowStyle
	accounts.Content = append(accounts.Content, account)
	return nil
}

// errAbsent says that there was nothing to delete.
var errAbsent = errors.New("no such account")

// remove deletes every account with a key.
func remove(accessKey string) func(*file, *yaml.Node) error {
	return func(f *file, root *yaml.Node) error {
		accounts := get(root, keyAccounts)
		if accounts == nil {
			return errAbsent
		}
		var kept []*yaml.Node
		for _, item := range accounts.Content {
			if !f.names(follow(item), accessKey) {
				kept = append(kept, item)
			}
		}
		if len(kept) == len(accounts.Content) {
			return errAbsent
		}
		accounts.Content = kept
		if len(kept) == 0 {
			accounts.Style |= yaml.FlowStyle
		}
		return nil
	}
}

// replaceGlobal puts other patterns into the place of the global white list.
func replaceGlobal(patterns []string) func(*file, *yaml.Node) error {
	return func(_ *file, root *yaml.Node) error {
		for _, p := range patterns {
			if _, err := ParsePattern(p); err != nil {
				return err
			}
		}
		set(root, keyGlobal, sequence(patterns))
		return nil
	}
}

// names tells whether an account's mapping has a key.
func (f *file) names(account *yaml.Node, accessKey string) bool {
	n := get(account, keyAccessKey)
	if n == nil {
		return false
	}
	text, err := f.text(n, keyAccessKey)
	return err == nil && text == accessKey
}

// get is the value of a key of a mapping, nil when it is not there.
func get(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if follow(mapping.Content[i]).Value == key {
			return follow(mapping.Content[i+1])
		}
	}
	return nil
}

// set sets a key of a mapping; comments beside an older value stay.
func set(mapping *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if follow(mapping.Content[i]).Value == key {
			old := mapping.Content[i+1]
			value.HeadComment, value.LineComment, value.FootComment = old.HeadComment, old.LineComment, old.FootComment
			mapping.Content[i+1] = value
			return
		}
	}
	mapping.Style &^= yaml.FlowStyle
	mapping.Content = append(mapping.Content, scalar(key), value)
}

func scalar(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if plainInt.MatchString(text) || plainOther.MatchString(text) || strings.ContainsAny(text, "\n\r\t") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// quoted is a text that no reader can take for something else.
func quoted(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle}
}

func integer(v int64) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v, 10)}
}

func sequence(texts []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, t := range texts {
		n.Content = append(n.Content, scalar(t))
	}
	if len(texts) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}
