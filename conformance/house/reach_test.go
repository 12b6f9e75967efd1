package house

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// loaders are what runs another program or loads code; nothing of the product may.
var (
	loaders    = []string{"os/exec", "plugin", "C"}
	loaderCall = regexp.MustCompile(`\b(syscall|unix)\.(Exec|ForkExec|StartProcess|RawSyscall\w*|Syscall\w*)\b|\bos\.StartProcess\b|\bplugin\.Open\b|/bin/(ba)?sh\b`)
)

// writers are the only files of the product that make, change or remove files, and what keeps them where they belong.
var writers = map[string]string{
	"store/vfs/os.go":                "the store's files; the store joins its root with names of its own and of topics (consumequeue refuses names that are no folder's)",
	"store/vfs/sized_linux.go":       "the same, files of a size",
	"compat/configfile.go":           "config/*.json below the store, kvConfig.json, and the configuration files given at the start",
	"compat/newfile.go":              "files of the profile at its first start",
	"remoting/acl/table.go":          "the default ACL file, when it is missing",
	"remoting/acl/folder.go":         "ACL files that are there",
	"cmd/rocketd/signals.go":         "/dev/tty is opened to see whether there is one",
	"remoting/certtest/authority.go": "of tests",
}

var writing = regexp.MustCompile(`\bos\.(Create\w*|WriteFile|OpenFile|OpenRoot|Mkdir\w*|Rename|Remove\w*|Link|Symlink|Chmod|Chown|Truncate|CopyFS)\(|\b(unix|syscall)\.(Open\w*|Creat|Mkdir\w*|Rename\w*|Unlink\w*|Rmdir|Link\w*|Symlink\w*|Mknod\w*|Truncate|Chmod|Chown)\(|\bioutil\.`)

// product tells whether a file is part of what is built.
func product(s source) bool {
	return !strings.HasPrefix(s.Dir, "conformance") && !strings.HasSuffix(s.Path, "_test.go")
}

// TestNothingRunsPrograms: no code path of the product runs a shell or another program, or loads code.
func TestNothingRunsPrograms(t *testing.T) {
	for _, s := range mustSources(t) {
		if !product(s) {
			continue
		}
		for _, i := range s.Imports {
			if slices.Contains(loaders, i) {
				t.Errorf("%s imports %s: nothing of the product runs programs or loads code", s.Path, i)
			}
		}
		if call := loaderCall.FindString(s.Text); call != "" {
			t.Errorf("%s: %s: nothing of the product runs programs or loads code", s.Path, call)
		}
	}
}

// TestWritersAreKnown: files are made, changed and removed in a few places, each of which keeps to store and configuration.
func TestWritersAreKnown(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range mustSources(t) {
		if !product(s) {
			continue
		}
		call := writing.FindString(s.Text)
		if call == "" {
			continue
		}
		seen[s.Path] = true
		if writers[s.Path] == "" {
			t.Errorf("%s: %s…): a new place that writes files; let it use store/vfs or compat, or say here what keeps it in the folders of store and configuration", s.Path, call)
		}
	}
	for path := range writers {
		if !seen[path] {
			t.Errorf("%s writes no files any more", path)
		}
	}
}
