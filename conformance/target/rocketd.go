package target

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// root is the folder of the module that this file was compiled from.
var root = sync.OnceValues(func() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if ok && filepath.IsAbs(file) {
		return filepath.Dir(filepath.Dir(filepath.Dir(file))), nil
	}
	// Compiled with -trimpath: tests run in their package's folder, below the root.
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if mod, rerr := os.ReadFile(filepath.Join(dir, "go.mod")); rerr == nil && strings.HasPrefix(string(mod), "module rocketd\n") {
			return dir, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", fmt.Errorf("no go.mod of module rocketd above the working folder")
})

// rocketdBinary builds ./cmd/rocketd once for this test process, so that an edit during the run changes nothing.
var rocketdBinary = sync.OnceValues(func() (string, error) {
	if ready := os.Getenv("CONFORMANCE_ROCKETD"); ready != "" {
		return filepath.Abs(ready)
	}
	dir, err := root()
	if err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(cache, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	removeOrphans(bin)
	out := filepath.Join(bin, "rocketd-"+strconv.Itoa(os.Getpid()))
	cmd := exec.Command("go", "build", "-o", out, "./cmd/rocketd")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/rocketd: %w\n%s", err, text)
	}
	return out, nil
})

// removeOrphans deletes the binaries of test processes that are gone.
func removeOrphans(bin string) {
	entries, err := os.ReadDir(bin)
	if err != nil {
		return
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(strings.TrimPrefix(e.Name(), "rocketd-"))
		if err == nil && !alive(pid) {
			_ = os.Remove(filepath.Join(bin, e.Name()))
		}
	}
}

func rocketdCommand(role string, args []string) (*exec.Cmd, error) {
	bin, err := rocketdBinary()
	if err != nil {
		return nil, err
	}
	return exec.Command(bin, append([]string{role}, args...)...), nil
}
