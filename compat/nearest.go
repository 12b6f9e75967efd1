package compat

import (
	"log/slog"
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

// TellUnknownKeys names keys that do not exist, those that look like a slip of the pen with the key that was likely meant.
// where is what does not have the others either.
func TellUnknownKeys(log *slog.Logger, keys, known []string, where string) {
	slips, others := UnknownKeys(keys, known)
	for _, s := range slips {
		log.Warn("a configuration key that does not exist; it changes nothing. Perhaps another was meant", "key", s.Key, "perhaps", s.Value)
	}
	if len(others) > 0 {
		log.Warn("configuration keys that do not exist, in "+where+" neither; they change nothing", "keys", others)
	}
}
