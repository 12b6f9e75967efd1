package offsets

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"rocketd/compat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is who commits in these tests.
type client struct{}

func (*client) RemoteAddr() netip.AddrPort { return netip.MustParseAddrPort("10.0.0.9:50000") }

var by = new(client)

// open opens a table whose file lies at path.
func open(t testing.TB, path string) *Table {
	t.Helper()
	table, err := Open(Options{Path: path, Files: compat.OSFiles, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestCommitAndQuery(t *testing.T) {
	table := open(t, filepath.Join(t.TempDir(), "consumerOffset.json"))
	defer table.Close()
	table.Commit(by, "GroupA", "TopicA", 0, 10)
	table.Commit(by, "GroupA", "TopicA", 1, 20)
	table.Commit(by, "GroupA", "TopicA", 1, 5) // smaller is taken too
	table.Commit(by, "GroupB", "TopicA", 0, 7)
	table.Commit(by, "GroupA", "TopicB", 3, -1)
	table.Commit(by, "", "TopicA", 0, 99)
	table.Commit(by, "GroupA", "", 0, 99)
	for _, tt := range []struct {
		group, topic string
		queue        int32
		want         int64
		known        bool
	}{
		{"GroupA", "TopicA", 0, 10, true},
		{"GroupA", "TopicA", 1, 5, true},
		{"GroupB", "TopicA", 0, 7, true},
		{"GroupB", "TopicA", 1, -1, false},
		{"GroupC", "TopicA", 0, -1, false},
		{"GroupA", "TopicB", 3, -1, false},
		{"", "TopicA", 0, -1, false},
		{"GroupA", "", 0, -1, false},
	} {
		if got, known := table.Query(tt.group, tt.topic, tt.queue); got != tt.want || known != tt.known {
			t.Errorf("%s %s %d: %d, %v; want %d, %v", tt.group, tt.topic, tt.queue, got, known, tt.want, tt.known)
		}
	}
	if got := table.Topics("GroupA"); !slices.Equal(got, []string{"TopicA", "TopicB"}) {
		t.Errorf("topics %v", got)
	}
	if got := table.Groups("TopicA"); !slices.Equal(got, []string{"GroupA", "GroupB"}) {
		t.Errorf("groups %v", got)
	}
	if got := table.Offsets("GroupA", "TopicA"); !reflect.DeepEqual(got, map[int32]int64{0: 10, 1: 5}) {
		t.Errorf("offsets %v", got)
	}
	table.RemoveGroup("GroupA")
	if _, known := table.Query("GroupA", "TopicA", 0); known {
		t.Error("a removed group is known")
	}
	if _, known := table.Query("GroupB", "TopicA", 0); !known {
		t.Error("another group was removed")
	}
}

// The exact bytes that the official broker writes.
func TestFileBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config", "consumerOffset.json")
	table := open(t, path)
	table.Commit(by, "GroupA", "TopicA", 0, 10)
	table.Commit(by, "GroupA", "TopicA", 1, 20)
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	want := "{\n\t\"offsetTable\":{\n\t\t\"TopicA@GroupA\":{0:10,1:20\n\t\t}\n\t}\n}"
	if got, _ := os.ReadFile(path); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What an official broker has written is understood and written again with the same lines.
func TestOfficialFile(t *testing.T) {
	official, err := os.ReadFile("testdata/official.json")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "consumerOffset.json")
	if err := os.WriteFile(path, official, 0o644); err != nil {
		t.Fatal(err)
	}
	table := open(t, path)
	if got, _ := table.Query("StoreGroup", "StoreTopic", 2); got != 70 {
		t.Errorf("offset %d, want 70", got)
	}
	if got, _ := table.Query("StoreDead", "%RETRY%StoreDead", 0); got != 1 {
		t.Errorf("offset %d, want 1", got)
	}
	table.Commit(by, "StoreGroup", "StoreTopic", 2, 70)
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(path)
	if g, w := lines(got), lines(official); !slices.Equal(g, w) {
		t.Errorf("written again:\n%s\nofficial:\n%s", got, official)
	}
}

func lines(text []byte) []string {
	var all []string
	for line := range bytes.Lines(text) {
		all = append(all, string(bytes.TrimRight(line, ",\n")))
	}
	slices.Sort(all)
	return all
}

// A file in standard JSON, and names with the separator in them.
func TestStrangeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "consumerOffset.json")
	text := `{"offsetTable":{"TopicA@a@b":{"0":10},"none":{"0":1},"TopicB@g":{}}}`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	table := open(t, path)
	if got, _ := table.Query("a@b", "TopicA", 0); got != 10 {
		t.Errorf("offset %d, want 10", got)
	}
	table.Commit(by, "g", "TopicB", 0, 1) // into the empty table of the file
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path)
	defer again.Close()
	for _, k := range [][2]string{{"a@b", "TopicA"}, {"g", "TopicB"}} {
		if _, known := again.Query(k[0], k[1], 0); !known {
			t.Errorf("%v lost", k)
		}
	}
}

// Save writes only what has changed.
func TestSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "consumerOffset.json")
	table := open(t, path)
	table.Save()
	if err := table.saver.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a file without a commit: %v", err)
	}
	table.Commit(by, "G", "T", 0, 1)
	table.Save()
	if err := table.saver.Flush(); err != nil {
		t.Fatal(err)
	}
	first, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	table.Save()
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	if second, err := os.Stat(path); err != nil || !os.SameFile(first, second) {
		t.Errorf("written again without a commit (%v)", err)
	}
}

func TestConcurrentCommits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "consumerOffset.json")
	table := open(t, path)
	stop := make(chan struct{})
	var saver, wg sync.WaitGroup
	saver.Add(1)
	go func() {
		defer saver.Done()
		for {
			select {
			case <-stop:
				return
			default:
				table.Save()
				runtime.Gosched()
			}
		}
	}()
	for g := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 2000 {
				table.Commit(by, fmt.Sprintf("G%d", g), fmt.Sprintf("T%d", i%50), int32(i%4), int64(i))
			}
		}()
	}
	wg.Wait()
	close(stop)
	saver.Wait()
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path)
	defer again.Close()
	for g := range 4 {
		for i := 1900; i < 2000; i++ { // the last commit of each queue
			if got, _ := again.Query(fmt.Sprintf("G%d", g), fmt.Sprintf("T%d", i%50), int32(i%4)); got != int64(i) {
				t.Fatalf("G%d, %d: %d in the file", g, i, got)
			}
		}
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	table := open(t, filepath.Join(t.TempDir(), "consumerOffset.json"))
	defer table.Close()
	table.Commit(by, "GroupA", "TopicA", 0, 1)
	offset := int64(1)
	if n := testing.AllocsPerRun(1000, func() {
		offset++
		table.Commit(by, "GroupA", "TopicA", 0, offset)
		table.Query("GroupA", "TopicA", 0)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCommit(b *testing.B) {
	table := open(b, filepath.Join(b.TempDir(), "consumerOffset.json"))
	defer table.Close()
	for i := range b.N {
		table.Commit(by, "GroupA", "TopicA", int32(i&7), int64(i))
	}
}

// With Lmq the file of light groups is understood and written; when there is none, the older file is.
func TestLmqFile(t *testing.T) {
	dir := t.TempDir()
	o := Options{Path: filepath.Join(dir, "lmqConsumerOffset.json"), Older: filepath.Join(dir, "consumerOffset.json"), Lmq: true,
		Files: compat.OSFiles, Log: slog.New(slog.DiscardHandler)}
	before := open(t, o.Older)
	before.Commit(by, "G", "T", 2, 7)
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	want := map[int32]int64{2: 7}
	for range 2 { // by the older file, then by its own
		table, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Offsets("G", "T"); !maps.Equal(got, want) {
			t.Errorf("offsets %v, want %v", got, want)
		}
		table.Commit(by, "%LMQ%g", "T", 3, 5)
		table.Commit(by, "G", "T", 3, 8)
		want[3] = 8
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
	}
	table, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := table.Query("%LMQ%g", "T", 9); !ok || got != 5 {
		t.Errorf("offset %d of the light group", got)
	}
	if got := fmt.Sprint(table.Topics("%LMQ%g"), table.Groups("T"), table.ByGroup()); got != "[] [G] map[G:[T]]" { // as 4.9.7 lists them
		t.Errorf("lists %s", got)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(o.Path)
	if got := strings.NewReplacer("\n", "", "\t", "").Replace(string(text)); err != nil || got != `{"lmqOffsetTable":{"T@%LMQ%g":5},"offsetTable":{"T@G":{2:7,3:8}}}` {
		t.Errorf("file %s, %v", got, err)
	}
}

// asking is a log whose reader commits an offset with each line.
type asking struct {
	slog.Handler
	line func()
}

func (a asking) Enabled(context.Context, slog.Level) bool { return true }

func (a asking) Handle(context.Context, slog.Record) error {
	a.line()
	return nil
}

// Nobody waits for the log: a line is written when the table is free again.
func TestRemoveGroupLogsUnlocked(t *testing.T) {
	var table *Table
	lines := 0
	table, err := Open(Options{Path: filepath.Join(t.TempDir(), "consumerOffset.json"), Files: compat.OSFiles, Log: slog.New(asking{line: func() {
		lines++
		table.Commit(by, "log", fmt.Sprint(lines), 0, 1)
	}})})
	if err != nil {
		t.Fatal(err)
	}
	table.Commit(by, "G", "A", 0, 1)
	table.Commit(by, "G", "B", 0, 1)
	table.RemoveGroup("G")
	if got := table.Topics("log"); lines != 2 || len(got) != 2 {
		t.Errorf("%d lines, committed meanwhile: %v", lines, got)
	}
	if err := table.Close(); err != nil {
		t.Error(err)
	}
}
