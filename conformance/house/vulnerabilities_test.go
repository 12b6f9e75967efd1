package house

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVulnerabilitiesFailWhatMustFail runs the script of `make check` with a go command that ends as govulncheck does.
func TestVulnerabilitiesFailWhatMustFail(t *testing.T) {
	r, err := root()
	if err != nil {
		t.Fatal(err)
	}
	const warning = "NOT CHECKED FOR KNOWN VULNERABILITIES"
	for _, tt := range []struct {
		name, says string
		ends       string
		code       int
		loud       bool
	}{
		{"clean", "No vulnerabilities found.", "0", 0, false},
		{"a finding", "Vulnerability #1: GO-2099-0001", "3", 3, false},
		{"no database", `govulncheck: fetching vulnerabilities: Get "https://vuln.go.dev/index/modules.json.gz": dial tcp: no such host`, "1", 0, true},
		{"code that does not build", "govulncheck: loading packages: there are errors", "1", 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stub := filepath.Join(t.TempDir(), "go")
			text := "#!/usr/bin/env bash\n[ \"$1 $2 ${!#}\" = 'tool govulncheck ./...' ] || exit 9\ncat >&2 <<'END'\n" + tt.says + "\nEND\nexit " + tt.ends + "\n"
			if err := os.WriteFile(stub, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			c := exec.Command(filepath.Join(r, "conformance", "vulnerabilities"))
			c.Env = append(os.Environ(), "GO="+stub)
			out, err := c.CombinedOutput()
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != tt.code || strings.Contains(string(out), warning) != tt.loud || !strings.Contains(string(out), tt.says) {
				t.Errorf("code %d, want %d, loud %v\n%s", code, tt.code, tt.loud, out)
			}
		})
	}
}
