package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documents are the pages that users and contributors read.
var documents = []string{"README.md", "COMPATIBILITY.md", "SECURITY.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are the names under which the headings of a page can be linked to, by GitHub's rule.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		all[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// TestLinks: links between pages and files lead somewhere, also those into a page.
func TestLinks(t *testing.T) {
	r, err := root()
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(r, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	seen := 0
	for _, name := range documents {
		page := read(name)
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			target := m[1]
			if strings.Contains(target, "://") {
				continue
			}
			seen++
			file, anchor, _ := strings.Cut(target, "#")
			if file == "" {
				file = name
			}
			if _, err := os.Stat(filepath.Join(r, file)); err != nil {
				t.Errorf("%s: the link %s leads nowhere: %v", name, target, err)
			} else if anchor != "" && !anchors(read(file))[anchor] {
				t.Errorf("%s: %s has no heading for the link %s", name, file, target)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d links: the pattern finds them no more", seen)
	}
}

// Bounds that keep the list of differences readable: a longer row is two, or a paragraph below its table; a longer table is two themes.
const (
	longestRow   = 400 // bytes
	longestTable = 32  // rows
)

// TestDifferencesAreReadable: the hand-written part of COMPATIBILITY.md has sections, which its contents name, and short rows.
func TestDifferencesAreReadable(t *testing.T) {
	r, err := root()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(r, "COMPATIBILITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	contents, rest, ok := strings.Cut(string(b), "\n## Clients and tools\n")
	byHand, _, okToo := strings.Cut(rest, "\n## Request codes\n")
	if !ok || !okToo {
		t.Fatal("a section is missing")
	}
	section, rows := "", 0
	for line := range strings.Lines(byHand) {
		line = strings.TrimSuffix(line, "\n")
		if title, ok := strings.CutPrefix(strings.TrimPrefix(line, "#"), "## "); ok {
			section, rows = title, 0
			for anchor := range anchors("## " + title) {
				if !strings.Contains(contents, "(#"+anchor+")") {
					t.Errorf("the contents do not lead to %q", title)
				}
			}
		}
		if !strings.HasPrefix(line, "|") {
			continue
		}
		if rows++; rows > longestTable {
			t.Errorf("section %q has more than %d rows: part it by theme", section, longestTable)
		}
		if len(line) > longestRow {
			t.Errorf("section %q, a row of %d bytes (%d are the most): %.60s…", section, len(line), longestRow, line)
		}
	}
}
