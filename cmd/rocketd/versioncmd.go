package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"
)

// version and commit are set by the build: -ldflags '-X main.version=… -X main.commit=…'. A commit that ends in -dirty had changes
// that were not committed.
var version, commit string

// module is a module that was built in, with the hash that go.sum has of it.
type module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum,omitempty"`
}

// build is what the binary knows of how it was made.
type build struct {
	Version  string   `json:"version"`
	Commit   string   `json:"commit"` // empty when neither the build nor the Go tool noted one
	Protocol string   `json:"protocol"`
	Go       string   `json:"go"`
	OS       string   `json:"os"`
	Arch     string   `json:"arch"`
	Modules  []module `json:"modules"`
}

// thisBuild tells of the running binary.
func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return buildOf(version, commit, info)
}

// buildOf joins what the build set with what the Go tool noted, which stands in for what was not set.
func buildOf(version, commit string, info *debug.BuildInfo) build {
	b := build{version, commit, "RocketMQ 4.9.8", info.GoVersion, runtime.GOOS, runtime.GOARCH, []module{}}
	if b.Commit == "" {
		var dirty string
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				b.Commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "-dirty"
			}
		}
		if b.Commit != "" {
			b.Commit += dirty
		}
	}
	if b.Version == "" {
		b.Version = "dev"
		if len(b.Commit) >= 12 {
			b.Version += "-" + b.Commit[:12]
		}
	}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		b.Modules = append(b.Modules, module{d.Path, d.Version, d.Sum})
	}
	return b
}

// line is what --version prints.
func (b build) line() string { return fmt.Sprintf("rocketd %s (%s protocol)", b.Version, b.Protocol) }

// text is what the command version prints: the line of --version, then the rest.
func (b build) text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n", b.line())
	commit := b.Commit
	if commit == "" {
		commit = "unknown"
	}
	fmt.Fprintf(&s, "commit   %s\ngo       %s %s/%s\nmodules\n", commit, b.Go, b.OS, b.Arch)
	for _, m := range b.Modules {
		fmt.Fprintf(&s, "  %s %s\n", m.Path, m.Version)
	}
	return s.String()
}

func (b build) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(b)
}

func (p *process) version() *cli.Command {
	return &cli.Command{
		Name:         "version",
		Usage:        "print the version, the commit and the modules that are built in",
		OnUsageError: usage,
		Flags:        []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print it as JSON, with the modules' hashes"}},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			if c.Bool("json") {
				return thisBuild().json(p.stdout)
			}
			_, err := io.WriteString(p.stdout, thisBuild().text())
			return err
		},
	}
}
