package main

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBuildOf(t *testing.T) {
	const revision = "0123456789abcdef0123456789abcdef01234567"
	noted := &debug.BuildInfo{
		GoVersion: "go1.99.1",
		Settings:  []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: revision}},
		Deps: []*debug.Module{
			{Path: "example.org/a", Version: "v1.2.3", Sum: "h1:a="},
			{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v1.0.1", Sum: "h1:f="}},
		},
	}
	for _, tt := range []struct {
		name, version, commit   string
		info                    *debug.BuildInfo
		wantVersion, wantCommit string
		wantModules             int
	}{
		{"set by the build", "v1.0.0", "feed", noted, "v1.0.0", "feed", 2},
		{"noted by the Go tool", "", "", noted, "dev-0123456789ab", revision + "-dirty", 2},
		{"neither", "", "", &debug.BuildInfo{}, "dev", "", 0},
		{"changed, but of no revision", "", "", &debug.BuildInfo{Settings: noted.Settings[:1]}, "dev", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := buildOf(tt.version, tt.commit, tt.info)
			if b.Version != tt.wantVersion || b.Commit != tt.wantCommit || len(b.Modules) != tt.wantModules || b.Go != tt.info.GoVersion {
				t.Errorf("got %+v", b)
			}
		})
	}
	b := buildOf("v1.0.0", "feed", noted)
	want := "rocketd v1.0.0 (RocketMQ 4.9.8 protocol)\ncommit   feed\ngo       go1.99.1 " + runtime.GOOS + "/" + runtime.GOARCH +
		"\nmodules\n  example.org/a v1.2.3\n  example.org/fork v1.0.1\n"
	if got := b.text(); got != want {
		t.Errorf("text:\n%s\nwant:\n%s", got, want)
	}
}

func TestVersionCommand(t *testing.T) {
	code, out, errs := invoke("rocketd", "version")
	if code != exitOK || errs != "" || !strings.HasPrefix(out, "rocketd ") || !strings.Contains(out, "\ngo       "+runtime.Version()+" ") ||
		!strings.Contains(out, "\ncommit   ") || !strings.Contains(out, "\n  github.com/cloudwego/netpoll v") {
		t.Errorf("version: %d, %s%s", code, errs, out)
	}
	code, out, errs = invoke("rocketd", "version", "--json")
	var got struct {
		Version, Commit, Protocol, Go, OS, Arch string
		Modules                                 []struct{ Path, Version, Sum string }
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil || code != exitOK || errs != "" {
		t.Fatalf("version --json: %d, %v, %s%s", code, err, errs, out)
	}
	if got.Version == "" || got.Protocol != "RocketMQ 4.9.8" || got.Go != runtime.Version() || got.OS != runtime.GOOS || got.Arch != runtime.GOARCH {
		t.Errorf("got %+v", got)
	}
	netpoll := false
	for _, m := range got.Modules {
		netpoll = netpoll || m.Path == "github.com/cloudwego/netpoll" && strings.HasPrefix(m.Version, "v") && strings.HasPrefix(m.Sum, "h1:")
	}
	if !netpoll {
		t.Errorf("netpoll, its version or its hash is missing: %+v", got.Modules)
	}
	if code, _, _ := invoke("rocketd", "version", "now"); code != exitUsage {
		t.Errorf("an argument: code %d", code)
	}
}
