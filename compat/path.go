package compat

import "strings"

// LooksUnexpanded tells whether a path has a part that a shell or Java's own configuration would have replaced: ~, $HOME,
// ${user.home}. Properties files know no such thing: the official servers would make a folder of that name.
func LooksUnexpanded(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "~" || strings.HasPrefix(part, "$") || strings.Contains(part, "${") {
			return true
		}
	}
	return false
}
