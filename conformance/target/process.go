package target

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// A JVM on a busy two-core machine needs up to half a minute to serve.
	readyDeadline = 120 * time.Second
	// How long a server may take to end after SIGTERM.
	stopDeadline = 40 * time.Second
	pollInterval = 50 * time.Millisecond
)

// process is one server process, which can be started more than once with the same configuration. Its methods
// are for one goroutine at a time.
type process struct {
	name, dir  string
	kind       Kind
	role       string // "namesrv" or "broker"
	args       []string
	jvm        []string     // more flags for a JVM
	properties []string     // -D… for either kind
	ready      func() error // nil when the server serves

	cmd    *exec.Cmd
	exited chan struct{} // closed after Wait; waitErr is set before
	// waitErr belongs to the waiting goroutine until exited is closed.
	waitErr error
}

// Log is the path of the server's log: its standard output and error, of all its starts.
func (p *process) Log() string { return filepath.Join(p.dir, "server.log") }

// Pid is the process id of the running server; 0 when it does not run.
func (p *process) Pid() int {
	if !p.running() {
		return 0
	}
	return p.cmd.Process.Pid
}

// Start starts the server again on the same ports, store and configuration, and waits until it is ready.
func (p *process) Start() error {
	if p.running() {
		return fmt.Errorf("%s is running", p.name)
	}
	if err := p.launch(); err != nil {
		return err
	}
	return p.waitReady()
}

// Stop sends SIGTERM and waits until the server has exited. rocketd must exit with status 0; the official
// server's status is not looked at (a JVM ended by SIGTERM says 143).
func (p *process) Stop() error {
	if !p.running() {
		return fmt.Errorf("%s is not running", p.name)
	}
	return p.stop()
}

// Kill sends SIGKILL to the server's process group and waits for its end.
func (p *process) Kill() error {
	if !p.running() {
		return fmt.Errorf("%s is not running", p.name)
	}
	return p.kill()
}

func (p *process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

func (p *process) launch() error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	var cmd *exec.Cmd
	var err error
	if p.kind.official() {
		cmd, err = officialCommand(p.kind, p.role, p.dir, append(slices.Clone(p.jvm), p.properties...), p.args)
	} else {
		cmd, err = rocketdCommand(p.role, append(slices.Clone(p.args), p.properties...))
	}
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	// Nothing of the developer's own set-up may leak in: no store in $HOME, no name server of the shell.
	cmd.Env = append(withoutEnv(os.Environ(), "NAMESRV_ADDR", "ROCKETMQ_HOME", "HOME", "JAVA_TOOL_OPTIONS", "JAVA_OPT", "JAVA_OPT_EXT"),
		"HOME="+p.dir, "ROCKETMQ_HOME="+p.dir)
	cmd.SysProcAttr = processAttr()
	if err := spawn(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.cmd, p.exited = cmd, make(chan struct{})
	go func(exited chan struct{}) {
		p.waitErr = cmd.Wait()
		close(exited)
	}(p.exited)
	return nil
}

func (p *process) waitReady() error {
	deadline := time.Now().Add(readyDeadline)
	for {
		err := p.ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s %s exited during start: %v", p.kind, p.name, p.waitErr)
		case <-time.After(pollInterval):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s %s not ready after %s: %w", p.kind, p.name, readyDeadline, err)
		}
	}
}

func (p *process) stop() error {
	if !p.running() {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.exited:
	case <-time.After(stopDeadline):
		err := p.kill()
		return errors.Join(fmt.Errorf("%s %s still ran %s after SIGTERM", p.kind, p.name, stopDeadline), err)
	}
	if p.kind == Rocketd && p.waitErr != nil {
		return fmt.Errorf("%s after SIGTERM: %w", p.name, p.waitErr)
	}
	return nil
}

func (p *process) kill() error {
	if !p.running() {
		return nil
	}
	if err := killGroup(p.cmd.Process.Pid); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopDeadline):
		return fmt.Errorf("%s %s survives SIGKILL", p.kind, p.name)
	}
}

// tail appends the last lines of the log to b.
func (p *process) tail(b *strings.Builder, lines int) {
	f, err := os.Open(p.Log())
	if err != nil {
		return
	}
	defer f.Close()
	const most = 64 << 10
	if st, err := f.Stat(); err == nil && st.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	}
	text, _ := io.ReadAll(f)
	all := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	fmt.Fprintf(b, "--- %s %s: end of %s\n%s\n", p.kind, p.name, p.Log(), bytes.Join(all, []byte("\n")))
}

func withoutEnv(env []string, names ...string) []string {
	var kept []string
next:
	for _, kv := range env {
		for _, n := range names {
			if strings.HasPrefix(kv, n+"=") {
				continue next
			}
		}
		kept = append(kept, kv)
	}
	return kept
}

// spawner owns the thread that forks every child: the kernel's parent-death signal is tied to that thread, so
// it must live as long as the test process.
var spawner = struct {
	once sync.Once
	work chan func()
}{work: make(chan func())}

func spawn(cmd *exec.Cmd) error {
	spawner.once.Do(func() {
		go func() {
			runtime.LockOSThread()
			for f := range spawner.work {
				f()
			}
		}()
	})
	done := make(chan error)
	spawner.work <- func() { done <- cmd.Start() }
	return <-done
}
