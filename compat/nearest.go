package compat

import (
	"strings"

	"github.com/xrash/smetrics"
)

// Nearest returns the word of known that whoever wrote word is likely to have meant: the one with the least letters
// inserted, removed or replaced, at most one in three of word's and three in all; letters of another case are the same. "" when there
// is none. Of equals the first counts.
func Nearest(word string, known []string) string {
	lower := strings.ToLower(word)
	best, least := "", min(3, len(word)/3)+1
	for _, k := range known {
		if k == word || len(k)-len(word) >= least || len(word)-len(k) >= least {
			continue
		}
		if n := smetrics.WagnerFischer(lower, strings.ToLower(k), 1, 1, 1); n < least {
			best, least = k, n
		}
	}
	return best
}

// UnknownKeys parts keys that mean nothing: those that look like a slip of the pen, each with the known key that was likely
// meant as its value, and the others. What was not written with any text ("=value") is left out.
func UnknownKeys(keys, known []string) (slips []KeyValue, others []string) {
	for _, key := range keys {
		switch near := Nearest(key, known); {
		case near != "":
			slips = append(slips, KeyValue{key, near})
		case key != "":
			others = append(others, key)
		}
	}
	return slips, others
}
