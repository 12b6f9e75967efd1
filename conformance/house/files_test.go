package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxLines is the length at which a file has more than one noun.
const maxLines = 500

func TestFilesAreShort(t *testing.T) {
	for _, s := range mustSources(t) {
		if s.Lines > maxLines {
			t.Errorf("%s has %d lines, more than %d: give its second noun a file", s.Path, s.Lines, maxLines)
		}
	}
}

func TestPackagesHaveOneComment(t *testing.T) {
	docs := map[string][]string{}
	for _, s := range mustSources(t) {
		if strings.HasSuffix(s.Path, "_test.go") {
			if _, seen := docs[s.Dir]; !seen && strings.HasSuffix(s.Package, "_test") {
				continue
			}
			if s.Doc {
				docs[s.Dir] = append(docs[s.Dir], s.Path)
			}
			continue
		}
		if s.Doc {
			docs[s.Dir] = append(docs[s.Dir], s.Path)
		} else if _, seen := docs[s.Dir]; !seen {
			docs[s.Dir] = nil
		}
	}
	for dir, files := range docs {
		if len(files) != 1 {
			t.Errorf("%s: %d package comments (%s), want one", dir, len(files), strings.Join(files, ", "))
		}
	}
}

// nameless are names of packages and files that say nothing, and so attract everything.
var nameless = regexp.MustCompile(`^(util|utils|common|helper|helpers|base|types|misc|manager)$`)

func TestNamesSaySomething(t *testing.T) {
	for _, s := range mustSources(t) {
		file := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(s.Path), ".go"), "_test")
		if nameless.MatchString(file) || nameless.MatchString(s.Package) {
			t.Errorf("%s: the name says nothing; name the noun", s.Path)
		}
		if m := badType.FindStringSubmatch(s.Text); m != nil {
			t.Errorf("%s: type %s: no Manager, Service, Processor or Impl", s.Path, m[1])
		}
	}
}

var badType = regexp.MustCompile(`(?m)^type (\w+(?:Manager|Service|Processor|Impl)) `)

// The marks are put together here so that this file does not contain them.
var leftOpen = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b:?|panic\("(skele` + `ton|unimpl` + `emented|not impl` + `emented)`)

func TestNothingIsLeftOpen(t *testing.T) {
	for _, s := range mustSources(t) {
		for n, line := range strings.Split(s.Text, "\n") {
			if leftOpen.MatchString(line) && !strings.Contains(line, "SCHEDULE_TOPIC_") {
				t.Errorf("%s:%d: left open: %s", s.Path, n+1, strings.TrimSpace(line))
			}
			// Under testing/synctest a sleep turns the fake clock.
			if strings.HasSuffix(s.Path, "_test.go") && strings.Contains(line, "time.Sle"+"ep(") && !contains(s.Imports, "testing/synctest") {
				t.Errorf("%s:%d: a test sleeps; wait for the condition", s.Path, n+1)
			}
		}
	}
}

func TestDocumentsExist(t *testing.T) {
	r, err := root()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "ARCHITECTURE.md", "COMPATIBILITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "NOTICE", "Makefile"} {
		if fi, err := os.Stat(filepath.Join(r, name)); err != nil || fi.Size() == 0 {
			t.Errorf("%s is missing or empty", name)
		}
	}
}
