package store

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/storetest"
	"rocketd/store/vfs"
)

// unpack unpacks a store folder of an official broker into memory, under /.
func unpack(t *testing.T, name string) *vfs.Mem {
	t.Helper()
	return storetest.Unpack(t, "testdata/"+name+".tar.gz")
}

// manifest calls f with the fields of each line of a kind.
func manifest(t *testing.T, name, kind string, f func(fields []string)) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".tsv")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if fields := strings.Split(lines.Text(), "\t"); fields[0] == kind {
			n++
			f(fields[1:])
		}
	}
	if n == 0 {
		t.Fatalf("no %s in %s", kind, name)
	}
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// expectManifest checks everything that the manifest says of a store.
func expectManifest(t *testing.T, name string, s *Store) {
	t.Helper()
	manifest(t, name, "queue", func(f []string) {
		topic, queueId := f[0], int32(number(t, f[1]))
		if got := s.MinOffset(topic, queueId); got != number(t, f[2]) {
			t.Errorf("%s %d: min %d, want %s", topic, queueId, got, f[2])
		}
		if got := s.MaxOffset(topic, queueId); got < number(t, f[3]) {
			t.Errorf("%s %d: max %d, want at least %s", topic, queueId, got, f[3])
		}
	})
	manifest(t, name, "message", func(f []string) { expectMessage(t, s, f) })
	manifest(t, name, "record", func(f []string) {
		phyOffset, topic, queueId, queueOffset := number(t, f[0]), f[2], int32(number(t, f[3])), number(t, f[4])
		e, ok := s.Entry(topic, queueId, queueOffset)
		if !ok || e.PhyOffset != phyOffset || int64(e.Size) != number(t, f[1]) {
			t.Errorf("entry %s %d %d: %+v %v, want %s", topic, queueId, queueOffset, e, ok, f[0])
		}
		for _, key := range append(strings.Fields(f[6]), f[5]) {
			if key != "" && !slices.ContainsFunc(s.Query(topic, key, 64, 0, math.MaxInt64).Records, func(r message.Record) bool { return r.PhyOffset() == phyOffset }) {
				t.Errorf("%s %s is not found by %q", topic, f[0], key)
			}
		}
	})
}

func expectMessage(t *testing.T, s *Store, f []string) {
	t.Helper()
	topic, queueId, queueOffset := f[0], int32(number(t, f[1])), number(t, f[2])
	got := s.Get(topic, queueId, queueOffset, 1, nil)
	if got.Status != Found || got.Count != 1 {
		t.Errorf("%s %d %d: %+v", topic, queueId, queueOffset, got)
		return
	}
	r := records(t, got.Body)[0]
	body := r.Body()
	if r.SysFlag()&message.Compressed != 0 {
		z, err := zlib.NewReader(bytes.NewReader(body))
		if err == nil {
			body, err = io.ReadAll(z)
		}
		if err != nil {
			t.Error(err)
		}
	}
	sum := sha256.Sum256(body)
	uniqKey, _ := r.Property("UNIQ_KEY")
	keys, _ := r.Property("KEYS")
	tags, _ := r.Property("TAGS")
	have := []string{r.Topic(), fmt.Sprint(r.QueueId()), fmt.Sprint(r.QueueOffset()), fmt.Sprint(r.PhyOffset()), fmt.Sprint(r.Size()),
		fmt.Sprint(r.SysFlag()), fmt.Sprint(r.ReconsumeTimes()), fmt.Sprint(r.StoreTimestamp()), uniqKey, keys, tags, hex.EncodeToString(sum[:])}
	if !slices.Equal(have, f) {
		t.Errorf("got  %v\nwant %v", have, f)
	}
	if byTime := s.OffsetByTime(topic, queueId, r.StoreTimestamp()); s.TimeOf(topic, queueId, byTime) != r.StoreTimestamp() {
		t.Errorf("%s %d %d is not found by its time: %d", topic, queueId, queueOffset, byTime)
	}
	if topic == message.TopicSchedule {
		level, _ := r.Property("DELAY")
		delay := map[string]int64{"1": 1000, "3": 10_000, "18": 2 * 3600 * 1000}[level]
		if e, _ := s.Entry(topic, queueId, queueOffset); e.TagsCode != r.StoreTimestamp()+delay || delay == 0 {
			t.Errorf("delayed message of level %s: tagsCode %d", level, e.TagsCode)
		}
	}
}

// TestOfficialStores opens what the official broker wrote, whole and with parts missing, goes on writing, and opens
// that again.
func TestOfficialStores(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"clean", "killed"} {
		for missing, paths := range map[string][]string{
			"nothing": nil, "queues": {"consumequeue"}, "index": {"index"}, "checkpoint": {"checkpoint"},
			"all but the log": {"consumequeue", "index", "checkpoint"},
		} {
			t.Run(name+" without "+missing, func(t *testing.T) {
				mem := unpack(t, name)
				for _, p := range paths {
					if err := mem.RemoveAll("/store/" + p); err != nil {
						t.Fatal(err)
					}
				}
				s := openStore(t, mem, smallConfig("/store"), Options{Log: logger(t)})
				expectManifest(t, name, s)
				before := s.MaxOffset("StoreTopic", 1)
				var run []*message.Message
				for n := range 300 {
					run = append(run, newMessage("StoreTopic", 1, n), newMessage("New", 0, n))
				}
				put(t, s, run...)
				closeStore(t, s)
				s = openStore(t, mem, smallConfig("/store"), Options{})
				defer closeStore(t, s)
				expectManifest(t, name, s)
				if got := s.MaxOffset("StoreTopic", 1); got != before+300 {
					t.Errorf("max %d, want %d", got, before+300)
				}
				if got := readAll(t, s, "New", 0); len(got) != 300 {
					t.Errorf("%d new messages", len(got))
				}
				if got := s.Query("New", "key-299", 64, 0, math.MaxInt64).Records; len(got) != 1 {
					t.Errorf("%d records of key-299", len(got))
				}
			})
		}
	}
}

// TestRebuiltFilesAreOfficial builds queues and index from the official log: the files must be those of the official
// broker, to the byte.
func TestRebuiltFilesAreOfficial(t *testing.T) {
	official := unpack(t, "clean")
	mem := unpack(t, "clean")
	for _, dir := range []string{"consumequeue", "index", "checkpoint"} {
		if err := mem.RemoveAll("/store/" + dir); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, openStore(t, mem, smallConfig("/store"), Options{}))
	want, got := files(t, official, "/store/consumequeue"), files(t, mem, "/store/consumequeue")
	if !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))) {
		t.Errorf("files %v\nwant %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for name := range want {
		if !bytes.Equal(got[name], want[name]) {
			t.Errorf("%s differs", name)
		}
	}
	// The names of index files are times; their order counts.
	want, got = files(t, official, "/store/index"), files(t, mem, "/store/index")
	wantNames, gotNames := slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))
	if len(wantNames) != len(gotNames) {
		t.Fatalf("%d index files, want %d", len(gotNames), len(wantNames))
	}
	for i := range wantNames {
		w, g := want[wantNames[i]], got[gotNames[i]]
		for at := range w {
			if len(g) != len(w) || w[at] != g[at] {
				t.Errorf("index file %d differs from byte %d on: %x, want %x", i, at, g[at:at+min(20, len(g)-at)], w[at:at+min(20, len(w)-at)])
				break
			}
		}
	}
}

// files reads all files under a directory.
func files(t *testing.T, fsys vfs.FS, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := fsys.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if e.IsDir() {
				walk(name)
				continue
			}
			data, err := vfs.Files{FS: fsys}.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = data
		}
	}
	walk(dir)
	return all
}

// TestOwnFilesAreOfficial: the files of a store that was closed are those that the official broker expects.
func TestOwnFilesAreOfficial(t *testing.T) {
	mem := vfs.NewMem(nil)
	s := openStore(t, mem, smallConfig("/store"), Options{})
	if data := files(t, mem, "/store"); data["/store/abort"] == nil || len(data["/store/abort"]) != 0 || string(data["/store/lock"]) != "lock" {
		t.Error("abort or lock")
	}
	put(t, s, newMessage("T", 0, 0))
	closeStore(t, s)
	if _, err := mem.Stat("/store/abort"); err == nil || !strings.Contains(err.Error(), fs.ErrNotExist.Error()) {
		t.Error("the abort file is left", err)
	}
	data := files(t, mem, "/store")
	if len(data["/store/checkpoint"]) != 4096 || len(data["/store/consumequeue/T/0/00000000000000000000"]) != 1000 ||
		len(data["/store/commitlog/00000000000000000000"]) != 64<<10 {
		t.Error("sizes of files")
	}
	for name, b := range data {
		if strings.HasPrefix(name, "/store/index/") && len(b) != 40+500*4+400*20 {
			t.Errorf("%s has %d bytes", name, len(b))
		}
	}
}
