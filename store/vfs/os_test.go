package vfs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"
)

// The test binary started again with lockEnv set is another process that locks the file as Java does: a record
// lock of fcntl on byte 0. It says what became of it and ends with its input.
const lockEnv = "ROCKETD_TEST_LOCK"

func TestMain(m *testing.M) {
	name := os.Getenv(lockEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err == nil {
		err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Len: 1})
	}
	fmt.Println(err)
	bufio.NewReader(os.Stdin).ReadByte()
}

// lockAsJava returns what the other process got, and ends it.
func lockAsJava(t *testing.T, name string) (result string, end func()) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), lockEnv+"="+name)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line, func() {
		in.Close()
		c.Wait()
	}
}

func TestLockExcludesRecordLocks(t *testing.T) {
	name := path.Join(t.TempDir(), "lock")
	ours, err := OS.Lock(name, []byte("lock"))
	if err != nil {
		t.Fatal(err)
	}
	if held, err := Locked(OS, name); err != nil || !held {
		t.Errorf("Locked = %v, %v while we hold it", held, err)
	}
	got, end := lockAsJava(t, name)
	end()
	if got == "<nil>\n" {
		t.Error("another process could lock what we hold")
	}
	if f, err := os.Open(name); err == nil { // a record lock proper would be lost by this
		f.Close()
	}
	if got, end = lockAsJava(t, name); got == "<nil>\n" {
		t.Error("another process could lock after the file was opened and closed here")
	}
	end()
	ours.Close()

	if got, end = lockAsJava(t, name); got != "<nil>\n" {
		t.Fatalf("another process could not lock what nobody holds: %s", got)
	}
	if _, err := OS.Lock(name, []byte("lock")); !errors.Is(err, ErrLocked) {
		t.Errorf("Lock = %v while another process holds it", err)
	}
	if held, err := Locked(OS, name); err != nil || !held {
		t.Errorf("Locked = %v, %v while another process holds it", held, err)
	}
	end()
	if held, err := Locked(OS, name); err != nil || held {
		t.Errorf("Locked = %v, %v while nobody holds it", held, err)
	}
	if held, err := Locked(OS, name+"x"); err != nil || held {
		t.Errorf("Locked = %v, %v without a file", held, err)
	}
	ours, err = OS.Lock(name, []byte("lock"))
	if err != nil {
		t.Fatal(err)
	}
	ours.Close()
}

// A mapping of a file that was cut from outside faults, and the fault can be caught.
func TestMappingOfACutFile(t *testing.T) {
	f, err := OS.Create(path.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	m, err := f.Map(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() == nil {
			t.Error("no fault")
		}
	}()
	t.Log(m.Bytes()[1<<19])
}

// TestReadAhead: it is advice, whatever the range, and changes nothing that is read.
func TestReadAhead(t *testing.T) {
	name := t.TempDir() + "/file"
	want := bytes.Repeat([]byte("0123456789"), 50_000)
	if err := os.WriteFile(name, want, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := OS.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, r := range [][2]int64{{0, 100_000}, {499_999, 1 << 20}, {1 << 30, 1}, {0, 0}} {
		f.(Ahead).ReadAhead(r[0], r[1])
		got := make([]byte, len(want))
		if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: %v", r, err)
		}
	}
}
