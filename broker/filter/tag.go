// Package filter chooses messages for consumers at the broker: by the hash of their tag, or by a SQL92 expression on their
// properties. It keeps the expressions of the consumers in config/consumerFilter.json (table.go).
package filter

import (
	"errors"
	"slices"
	"strings"

	"rocketd/compat"
	"rocketd/protocol/message"
)

// All is the expression that takes every message.
const All = "*"

// TypeTag is the expression type of a tag expression; "" means the same.
const TypeTag = "TAG"

// IsTag tells whether an expression type is that of tags.
func IsTag(expressionType string) bool { return expressionType == "" || expressionType == TypeTag }

// ErrSplit is a tag expression that has nothing but separators.
var ErrSplit = errors.New("subString split error")

// Tags takes messages whose tag has one of a set of hashes (message.TagsCode). Two tags may share a hash:
// the client looks at the text again. A nil *Tags takes every message. Immutable, so held pulls share it.
type Tags struct {
	codes []int32 // sorted when there are more than linear
}

// linear is up to how many tags looking at each is quicker than halving.
const linear = 16

// SortCodes returns the codes as FromCodes wants them: many are sorted, each once. It changes codes.
func SortCodes(codes []int32) []int32 {
	if len(codes) <= linear {
		return codes
	}
	slices.Sort(codes)
	return slices.Clip(slices.Compact(codes))
}

// FromCodes makes the filter of a subscription as a heartbeat brings it: its text, and the hashes that
// the client has calculated, from SortCodes: what a heartbeat brings once is not sorted for every pull. nil for "*".
func FromCodes(subString string, codes []int32) *Tags {
	if subString == All {
		return nil
	}
	return &Tags{codes}
}

// Parse makes the filter of a tag expression: tags parted by `||`, with spaces around. nil for "*" and "". As
// FilterAPI#buildSubscriptionData of 4.9.8: an expression of blanks between separators takes no message.
func Parse(expression string) (*Tags, error) {
	if expression == "" || expression == All {
		return nil, nil
	}
	if strings.Trim(expression, "|") == "" && len(expression)%2 == 0 {
		return nil, ErrSplit // Java's split leaves nothing of it
	}
	var codes []int32
	for tag := range strings.SplitSeq(expression, "||") {
		// As String#trim of Java: everything up to the space.
		tag = strings.TrimFunc(tag, func(r rune) bool { return r <= ' ' })
		if tag != "" {
			codes = append(codes, compat.HashCode(tag))
		}
	}
	return &Tags{SortCodes(codes)}, nil
}

// MatchQueue decides by the tagsCode of a consume-queue entry, of which the low 32 bits count.
func (t *Tags) MatchQueue(tagsCode int64) bool {
	if t == nil {
		return true
	}
	if len(t.codes) > linear { // a pull goes through hundreds of entries, and a held one is asked under a lock
		_, found := slices.BinarySearch(t.codes, int32(tagsCode))
		return found
	}
	return slices.Contains(t.codes, int32(tagsCode))
}

// MatchRecord decides by the record: the tag's hash has decided already.
func (t *Tags) MatchRecord(message.Record) bool { return true }

// MatchProperties decides by the properties text: the tag's hash has decided already.
func (t *Tags) MatchProperties(string) bool { return true }
