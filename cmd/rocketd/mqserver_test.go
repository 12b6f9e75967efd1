package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The script that is installed as mqnamesrv and mqbroker starts the rocketd beside it with the command of its name, also by
// way of a link, of `sh`, and from a folder with a blank.
func TestInstalledScript(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b")
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("mqserver")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"bin/mqbroker": string(script), "bin/mqnamesrv": string(script), "bin/rocketd": "#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; done\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "link"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "bin", "mqnamesrv"), filepath.Join(dir, "link", "mqnamesrv")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		in   string
		line []string
		want string
	}{
		{"bin", []string{"./mqbroker", "-c", "my broker.conf"}, "<broker><-c><my broker.conf>"},
		{"bin", []string{"sh", "mqbroker"}, "<broker>"},
		{".", []string{"sh", "bin/mqnamesrv", "-p"}, "<namesrv><-p>"},
		{"link", []string{"./mqnamesrv"}, "<namesrv>"},
	} {
		cmd := exec.CommandContext(t.Context(), tt.line[0], tt.line[1:]...)
		cmd.Dir = filepath.Join(dir, tt.in)
		if tt.line[0] != "sh" {
			cmd.Path = filepath.Join(cmd.Dir, tt.line[0])
		}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != tt.want {
			t.Errorf("%q in %s: %q, %v; want %s", tt.line, tt.in, out, err, tt.want)
		}
	}
}
