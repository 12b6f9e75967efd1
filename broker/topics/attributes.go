package topics

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rocketd/protocol/message"
)

// Attributes of topics are of 5.x: code 17 of its tools brings changes of them ("+message.type=FIFO", "-message.type"), which
// the 5.3.3 broker keeps in topics.json. 4.9 brokers and clients read past them. Here there is one: the type of messages
// that a topic is for.

// MessageType is the attribute for the type of a topic's messages.
const MessageType = "message.type"

// The types of messages, as TopicMessageType of 5.3.3.
const (
	TypeNormal      = "NORMAL"
	TypeFIFO        = "FIFO"
	TypeDelay       = "DELAY"
	TypeTransaction = "TRANSACTION"
	TypeMixed       = "MIXED" // all of them
	TypeUnspecified = "UNSPECIFIED"
)

// messageTypes are the values of MessageType.
var messageTypes = []string{TypeUnspecified, TypeNormal, TypeFIFO, TypeDelay, TypeTransaction, TypeMixed}

// TypeOf is the type of messages that a topic is for: NORMAL when nobody has said so.
func TypeOf(c *Config) string {
	if t := c.Attributes[MessageType]; t != "" {
		return t
	}
	return TypeNormal
}

// TypeOfMessage is the type of a message with these properties, as TopicMessageType#parseFromMessageProperty of 5.3.3.
func TypeOfMessage(properties string) string {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			_, ok := message.Property(properties, name)
			return ok
		})
	}
	half, _ := message.Property(properties, message.PropertyTransactionPrepared)
	switch {
	case half == "true":
		return TypeTransaction
	case has(message.PropertyDelayTimeLevel, message.PropertyTimerDeliverMs, message.PropertyTimerDelaySec, message.PropertyTimerDelayMs):
		return TypeDelay
	case has(message.PropertyShardingKey):
		return TypeFIFO
	}
	return TypeNormal
}

// attributeChange is one change: the key with the sign before it, and the value that it gets.
type attributeChange struct{ key, value string }

// parseAttributes takes the text of changes apart, as AttributeParser of 5.3.3. Each key has a sign.
func parseAttributes(text string) (changes []attributeChange, err error) {
	if text == "" {
		return nil, nil
	}
	keys := make(map[string]bool)
	for item := range strings.SplitSeq(strings.TrimRight(text, ","), ",") {
		key, value, adds := strings.Cut(item, "=")
		value, _, _ = strings.Cut(value, "=")
		switch {
		case adds && !strings.Contains(key, "+"):
			return nil, fmt.Errorf("add/alter attribute format is wrong: %s", key)
		case !adds && !strings.Contains(key, "-"):
			return nil, fmt.Errorf("delete attribute format is wrong: %s", key)
		case keys[key]:
			return nil, fmt.Errorf("key duplication: %s", key)
		}
		keys[key] = true
		changes = append(changes, attributeChange{key, value})
	}
	return changes, nil
}

// alterAttributes returns current with the changes of text made, as AttributeParser and AttributeUtil of 5.3.3, with their
// remarks. current is nil for a new topic; it is not changed.
func alterAttributes(current map[string]string, create bool, text string) (map[string]string, error) {
	changes, err := parseAttributes(text)
	if err != nil {
		return nil, err
	}
	next, seen := maps.Clone(current), make(map[string]bool)
	for _, c := range changes {
		sign, key := c.key[0], c.key[1:]
		_, there := current[key]
		switch {
		case key == "" || strings.ContainsAny(key, "+-"):
			//lint:ignore ST1005 the official text
			return nil, errors.New("kv string format wrong.")
		case seen[key]:
			return nil, fmt.Errorf("alter duplication key. key: %s", key)
		case create && sign != '+':
			return nil, fmt.Errorf("only add attribute is supported while creating topic. key: %s", key)
		case sign == '-' && !there:
			return nil, fmt.Errorf("attempt to delete a nonexistent key: %s", key)
		case sign != '+' && sign != '-':
			return nil, fmt.Errorf("wrong format key: %s", key)
		case key != MessageType: // 5.3.3 knows three more, of things that are not here
			return nil, fmt.Errorf("unsupported key: %s", key)
		case sign == '+' && !slices.Contains(messageTypes, c.value):
			return nil, fmt.Errorf("value is not in set: %v", messageTypes)
		}
		seen[key] = true
		if sign == '-' {
			delete(next, key)
			continue
		}
		if next == nil {
			next = make(map[string]string)
		}
		next[key] = c.value
	}
	if len(next) == 0 {
		return nil, nil
	}
	return next, nil
}

// Alter is Put of a topic whose attributes are those that it has with the changes of text. An error is the remark of the
// answer; nothing has changed then.
func (t *Table) Alter(c *Config, text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.at(c.TopicName)
	s.RLock()
	old := s.m[c.TopicName]
	s.RUnlock()
	var current map[string]string
	if old != nil {
		current = old.Attributes
	}
	if old == nil && t.full(c.TopicName) {
		t.refused.Add(1)
		return ErrFull
	}
	next, err := alterAttributes(current, old == nil, text)
	if err != nil {
		return err
	}
	c.Attributes = next
	t.putLocked(c)
	return nil
}
