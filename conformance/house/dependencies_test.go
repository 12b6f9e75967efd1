package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reasons says why each direct dependency of go.mod is there.
var reasons = map[string]string{
	"github.com/cloudwego/netpoll":            "framing and connections: epoll without a goroutine for each idle connection",
	"github.com/json-iterator/go":             "JSON bodies and headers beyond the fast path",
	"github.com/modern-go/reflect2":           "json-iterator's own view of types, which its encoders are handed",
	"github.com/urfave/cli/v2":                "command line",
	"github.com/spaolacci/murmur3":            "the hash of the official bloom filter of message filters",
	"github.com/HdrHistogram/hdrhistogram-go": "latency percentiles of the bench",
	"go.uber.org/goleak":                      "tests: no goroutine is left behind",
	"pgregory.net/rapid":                      "tests: properties over random inputs",
	"go.yaml.in/yaml/v4":                      "ACL files: places of errors, and comments that outlive a change",
	"github.com/fsnotify/fsnotify":            "ACL files that change are read at once",
	"github.com/youmark/pkcs8":                "encrypted private keys of TLS",
	"github.com/xrash/smetrics":               "which key or flag a misspelt one was meant for; urfave/cli brings it along",
	"golang.org/x/sys":                        "fdatasync, open-file-description locks, statfs",
}

var requireLine = regexp.MustCompile(`(?m)^\s*(?:require )?([\w./-]+\.[\w./-]+) v\S+( // indirect)?$`)

func TestDirectDependenciesHaveAReason(t *testing.T) {
	r, err := root()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(r, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range requireLine.FindAllStringSubmatch(string(b), -1) {
		if m[2] != "" || strings.HasPrefix(m[1], "honnef.co/") {
			continue
		}
		found[m[1]] = true
		if reasons[m[1]] == "" {
			t.Errorf("go.mod requires %s: give its reason in conformance/house", m[1])
		}
	}
	for mod := range reasons {
		if !found[mod] {
			t.Errorf("%s has a reason but is not a direct dependency of go.mod", mod)
		}
	}
}
