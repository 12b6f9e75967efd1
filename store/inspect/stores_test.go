package inspect

import (
	"bytes"
	"fmt"
	"net/netip"
	"path"
	"runtime"
	"strings"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/storetest"
	"rocketd/store/vfs"
)

// unpack unpacks a store of an official broker into memory, as /store.
func unpack(t testing.TB, name string) *vfs.Mem {
	t.Helper()
	return storetest.Unpack(t, "../testdata/"+name+".tar.gz")
}

// smallConfig is that of the brokers which wrote the official stores, and of those made here.
func smallConfig() store.Config {
	cfg := store.DefaultConfig("/store")
	cfg.MappedFileSizeCommitLog = 64 << 10
	cfg.MappedFileSizeConsumeQueue = 1000
	cfg.MaxHashSlotNum = 500
	cfg.MaxIndexNum = 400
	return cfg
}

func open(t testing.TB, mem *vfs.Mem) *Dir {
	t.Helper()
	d, err := Open(Options{FS: mem, Root: "/store"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func verifyStore(t testing.TB, mem *vfs.Mem) *Report {
	t.Helper()
	r, err := open(t, mem).Verify(0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantClean fails the test when there are findings.
func wantClean(t testing.TB, r *Report) {
	t.Helper()
	for _, f := range r.Findings {
		t.Error(f)
	}
}

func read(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	data, err := vfs.Files{FS: fsys}.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t testing.TB, fsys vfs.FS, name string, data []byte) {
	t.Helper()
	err := fsys.MkdirAll(path.Dir(name))
	if err == nil {
		err = vfs.Files{FS: fsys}.WriteFile(name, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// patch writes bytes into a file.
func patch(t testing.TB, fsys vfs.FS, name string, at int64, b []byte) {
	t.Helper()
	f, err := fsys.Open(name)
	if err == nil {
		_, err = f.WriteAt(b, at)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func truncate(t testing.TB, fsys vfs.FS, name string, size int64) {
	t.Helper()
	f, err := fsys.Open(name)
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tree reads all files under a directory.
func tree(t testing.TB, fsys vfs.FS, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := fsys.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name := path.Join(dir, e.Name()); e.IsDir() {
				walk(name)
			} else {
				all[name] = read(t, fsys, name)
			}
		}
	}
	walk(dir)
	return all
}

func sameTree(a, b map[string][]byte) string {
	for name := range a {
		if c, ok := b[name]; !ok || !bytes.Equal(a[name], c) {
			return name
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			return name
		}
	}
	return ""
}

var host = netip.MustParseAddrPort("127.0.0.1:10911")

// newMessage is a message with a body of some size, a tag, a unique key and two keys.
func newMessage(topic string, queueId int32, n int) *message.Message {
	p := message.AppendProperty(nil, "KEYS", fmt.Sprintf("key-%d shared", n))
	p = message.AppendProperty(p, "UNIQ_KEY", fmt.Sprintf("uniq-%s-%d-%d", topic, queueId, n))
	p = message.AppendProperty(p, "TAGS", fmt.Sprintf("Tag%d", n%2))
	body := strings.Repeat(fmt.Sprintf("body-%s-%d-%d ", topic, queueId, n), 1+n%20)
	return &message.Message{Topic: topic, QueueId: queueId, BornHost: host, StoreHost: host, Body: []byte(body), Properties: string(p)}
}

// ownStore opens a store of ours on mem.
func ownStore(t testing.TB, mem *vfs.Mem) *store.Store {
	t.Helper()
	s, err := store.Open(smallConfig(), store.Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	return s
}

// fillStore puts messages into three queues and waits until they are dispatched.
func fillStore(t testing.TB, s *store.Store, from, n int) {
	t.Helper()
	var run []*store.Put
	for i := from; i < from+n; i++ {
		run = append(run, &store.Put{Message: newMessage("T", int32(i%2), i)}, &store.Put{Message: newMessage("U", 0, i)})
	}
	for len(run) > 0 {
		k := min(16, len(run))
		s.Put(run[:k])
		for _, p := range run[:k] {
			if p.Err != nil {
				t.Fatal(p.Err)
			}
		}
		run = run[k:]
	}
	deadline := time.Now().Add(time.Minute)
	for s.DispatchBehind() > 0 {
		if time.Now().After(deadline) {
			t.Fatal("dispatch stands still")
		}
		runtime.Gosched()
	}
}

func closeStore(t testing.TB, s *store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
