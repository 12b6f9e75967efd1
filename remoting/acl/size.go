package acl

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// The bounds of an ACL file. The YAML library keeps a whole document in memory and takes some 400 bytes for each key, item and comment,
// whatever it is, so that a text of a few MiB could ask for hundreds: what costs is counted before it is read.
const (
	// maxFile is how many characters a file may have: codePointLimit of SnakeYAML 2.0, beyond which 4.9.8 reads none either.
	maxFile = 3 << 20
	// maxBytes is how long such a file is at most.
	maxBytes = maxFile * utf8.UTFMax
	// maxValues is how many keys and items a file may have, those behind an alias each time: as many as one of maxFile characters can hold
	// without ("- t=PUB" and its end are 8). Comments count as two.
	maxValues = maxFile / 8
)

// compose makes a document of text within the bounds, nil when it has none. Every error is a *FileError.
func compose(path string, data []byte) (*yaml.Node, error) {
	if n := utf8.RuneCount(data); n > maxFile {
		return nil, &FileError{Place{Path: path}, fmt.Sprintf("the file has %d characters, more than %d", n, maxFile)}
	}
	if n := signs(data); n > maxValues {
		return nil, &FileError{Place{Path: path}, fmt.Sprintf("the file has signs of %d keys, items and comments, more than %d", n, maxValues)}
	}
	document := new(yaml.Node)
	if err := yaml.Unmarshal(data, document); err != nil {
		return nil, syntaxError(path, data, err)
	}
	if document.Kind == 0 || len(document.Content) == 0 {
		return nil, nil
	}
	return document, nil
}

// signs is an upper bound of what a document costs: one for each node (key, value, item or collection), two for each comment. Every node
// but the first has a sign in front of it, and what looks like a sign within a text counts too; that is rare in an ACL file.
//
//   - ?  :        an item; a key and its value, which may be missing; each before a blank
//     [  {  ,        an item, or a key and its value, in lists and mappings on a line
//     #              a comment, behind a blank
func signs(data []byte) int {
	flow := hasFlow(data)
	n := 2 // the document and its root
	for i, c := range data {
		switch c {
		case '-':
			if blankAt(data, i+1) {
				n++
			}
		case '?':
			if blankAt(data, i+1) {
				n += 2
			}
		case ':':
			if flow || blankAt(data, i+1) { // in a mapping on a line a ':' may stand close to what follows
				n += 2
			}
		case '#':
			if blankAt(data, i-1) {
				n += 2
			}
		case '[', '{', ',':
			if flow {
				n += 2
			}
		}
	}
	return n
}

// hasFlow tells whether a text may have a list or a mapping on a line that is not empty: its sign stands behind a blank.
func hasFlow(data []byte) bool {
	if bytes.HasPrefix(data, []byte{0xfe, 0xff}) || bytes.HasPrefix(data, []byte{0xff, 0xfe}) { // UTF-16
		return true
	}
	for i, c := range data {
		if c != '[' && c != '{' || !blankAt(data, i-1) {
			continue
		}
		inside := bytes.TrimLeft(data[i+1:], " ")
		if len(inside) == 0 || inside[0] != c+2 { // "]" and "}" stand two behind their "[" and "{"
			return true
		}
	}
	return false
}

// blankAt tells whether no visible ASCII character stands at a place. (Some of the others end a line in YAML.)
func blankAt(data []byte, i int) bool {
	return i < 0 || i >= len(data) || data[i] <= ' ' || data[i] >= utf8.RuneSelf
}
