package commitlog

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// aheadFS notes what is read ahead of its files.
type aheadFS struct {
	vfs.FS
	mu    sync.Mutex
	asked []string
}

func (f *aheadFS) Open(name string) (vfs.File, error) {
	file, err := f.FS.Open(name)
	return &aheadFile{file, f, name[len(name)-7:]}, err
}

func (f *aheadFS) take() (asked []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked, f.asked = f.asked, nil
	return asked
}

type aheadFile struct {
	vfs.File
	fs   *aheadFS
	name string
}

// ReadAhead implements vfs.Ahead.
func (f *aheadFile) ReadAhead(offset, size int64) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.asked = append(f.fs.asked, fmt.Sprintf("%s %d+%d", f.name, offset, size))
}

// Windows of 131072 bytes, each once, the one behind what is read too, to a file's end.
func TestReadAhead(t *testing.T) {
	const file = 300_000
	fs := &aheadFS{FS: vfs.NewMem(nil)}
	o := options(func(o *Options) { o.FS, o.FileSize = fs, file })
	l := started(t, o)
	for i := range 80 {
		mustAppend(t, l, put(msg(0, fmt.Sprint(i), 10_000)))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const from = 2 * file // the first two files are cold
	if err := l.Recover(from, true, func(int64, message.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	fs.take()
	for _, c := range []struct {
		offset int64
		size   int
		want   []string
	}{
		{0, 20_000, []string{"0000000 0+131072", "0000000 131072+131072"}},
		{20_000, 100_000, nil},
		{120_000, 20_000, []string{"0000000 262144+37856"}},
		{280_000, 20_000, nil},
		{300_000, 1, []string{"0300000 0+131072", "0300000 131072+131072"}},
		{599_999, 1, []string{"0300000 262144+37856"}},
		{from, 20_000, nil},
		{-1, 1, nil}, {1 << 40, 1, nil},
	} {
		l.ReadAhead(c.offset, c.size)
		if got := fs.take(); !slices.Equal(got, c.want) {
			t.Errorf("%d bytes from %d: %q, want %q", c.size, c.offset, got, c.want)
		}
	}
}
