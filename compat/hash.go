package compat

import "unicode/utf8"

// HashCode is Java's String.hashCode of s: s[0]*31^(n-1) + ... + s[n-1] over UTF-16 units, wrapping.
// Tags codes and index slots are made of it.
func HashCode(s string) int32 {
	var h int32
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return hashRunes(h, s[i:])
		}
		h = 31*h + int32(s[i])
	}
	return h
}

// hashRunes goes on with h over text that is not all ASCII.
func hashRunes(h int32, s string) int32 {
	for _, r := range s {
		if r >= 0x10000 {
			h = 31*h + 0xd800 + (r-0x10000)>>10
			h = 31*h + 0xdc00 + (r-0x10000)&0x3ff
			continue
		}
		h = 31*h + r
	}
	return h
}
