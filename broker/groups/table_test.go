package groups

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rocketd/compat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a table whose file lies at path.
func open(t *testing.T, path string, auto *bool) *Table {
	t.Helper()
	table, err := Open(Options{
		Path: path, Files: compat.OSFiles, Log: slog.New(slog.DiscardHandler),
		Clock:      func() time.Time { return time.UnixMilli(1_700_000_000_000) },
		AutoCreate: func() bool { return *auto },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	})
	return table
}

func saved(t *testing.T, table *Table) {
	t.Helper()
	done := make(chan error, 1)
	table.Saved(func(err error) { done <- err })
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the file was not written")
	}
}

// The reserved groups of SubscriptionGroupManager of 4.9.8.
func TestSystemGroups(t *testing.T) {
	auto := false
	table := open(t, filepath.Join(t.TempDir(), "subscriptionGroup.json"), &auto)
	for _, name := range []string{"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY",
		"CID_ONSAPI_PULL", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER"} {
		if c := table.Find(name); c == nil || c.GroupName != name || !c.ConsumeEnable || c.RetryMaxTimes != 16 {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if n := len(table.Wrapper().SubscriptionGroupTable); n != 7 {
		t.Errorf("%d groups, want 7", n)
	}
}

func TestFind(t *testing.T) {
	auto := false
	table := open(t, filepath.Join(t.TempDir(), "subscriptionGroup.json"), &auto)
	if c := table.Find("GroupA"); c != nil {
		t.Errorf("created %+v while auto-creation is off", c)
	}
	if c := table.Find("CID_RMQ_SYS_TRANS"); c == nil {
		t.Error("a system group was not created")
	}
	auto = true
	c, created := table.FindOrCreate("GroupA")
	if !created || *c != *DefaultConfig("GroupA") {
		t.Errorf("%+v, %v", c, created)
	}
	if again, created := table.FindOrCreate("GroupA"); again != c || created {
		t.Errorf("second time %+v, %v", again, created)
	}
	if v := table.Wrapper().DataVersion; v.Counter != 2 || v.Timestamp != 1_700_000_000_000 {
		t.Errorf("version %+v", v)
	}
}

// The exact bytes that the official broker writes, in the pretty form of the file.
func TestFileBytes(t *testing.T) {
	auto := true
	path := filepath.Join(t.TempDir(), "config", "subscriptionGroup.json")
	table := open(t, path, &auto)
	for _, name := range system {
		table.Delete(name)
	}
	if table.Delete("GroupA") {
		t.Error("deleted what is not there")
	}
	table.Put(DefaultConfig("GroupA"))
	saved(t, table)
	want := `{
	"dataVersion":{
		"counter":8,
		"timestamp":1700000000000
	},
	"subscriptionGroupTable":{
		"GroupA":{
			"brokerId":0,
			"consumeBroadcastEnable":true,
			"consumeEnable":true,
			"consumeFromMinEnable":true,
			"groupName":"GroupA",
			"notifyConsumerIdsChangedEnable":true,
			"retryMaxTimes":16,
			"retryQueueNums":1,
			"whichBrokerWhenConsumeSlowly":1
		}
	}
}`
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
	path := filepath.Join(t.TempDir(), "subscriptionGroup.json")
	if err := os.WriteFile(path, official, 0o644); err != nil {
		t.Fatal(err)
	}
	auto := false
	table := open(t, path, &auto)
	if c, ok := table.Lookup("StoreGroup"); !ok || !c.ConsumeEnable {
		t.Errorf("StoreGroup: %+v", c)
	}
	saved(t, table)
	got, _ := os.ReadFile(path)
	if g, w := lines(got), lines(official); !slices.Equal(g, w) {
		t.Errorf("written again:\n%s\nofficial:\n%s", got, official)
	}
}

// lines are the sorted lines of a text without what depends on their order.
func lines(text []byte) []string {
	var all []string
	for line := range bytes.Lines(text) {
		all = append(all, string(bytes.TrimRight(line, ",\n")))
	}
	slices.Sort(all)
	return all
}

func TestRestart(t *testing.T) {
	auto := true
	path := filepath.Join(t.TempDir(), "subscriptionGroup.json")
	table := open(t, path, &auto)
	c := DefaultConfig("GroupA")
	c.ConsumeEnable, c.RetryQueueNums, c.BrokerId = false, 7, 3
	table.Put(c)
	table.Find("GroupB")
	saved(t, table)
	again := open(t, path, &auto)
	if got, _ := again.Lookup("GroupA"); got == nil || *got != *c {
		t.Errorf("%+v, want %+v", got, c)
	}
	if again.Wrapper().DataVersion != table.Wrapper().DataVersion {
		t.Errorf("version %+v, want %+v", again.Wrapper().DataVersion, table.Wrapper().DataVersion)
	}
	// A file of an older broker, without newer keys, has Java's defaults.
	old := filepath.Join(t.TempDir(), "subscriptionGroup.json")
	text := `{"dataVersion":{"counter":1,"timestamp":2},"subscriptionGroupTable":{"Old":{"groupName":"Old","retryQueueNums":2}}}`
	if err := os.WriteFile(old, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig("Old")
	want.RetryQueueNums = 2
	if got, _ := open(t, old, &auto).Lookup("Old"); got == nil || *got != *want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// failingFiles are files that can't be written while fail is set.
type failingFiles struct {
	compat.FileSystem
	fail atomic.Bool
}

func (f *failingFiles) WriteFile(name string, data []byte) error {
	if f.fail.Load() {
		return errors.New("on purpose")
	}
	return f.FileSystem.WriteFile(name, data)
}

// TestUnsaved: a new group is unsaved until a write has succeeded that it is in, whoever asks for it; what was there before never is.
func TestUnsaved(t *testing.T) {
	files := &failingFiles{FileSystem: compat.OSFiles}
	table, err := Open(Options{Path: filepath.Join(t.TempDir(), "subscriptionGroup.json"), Files: files, Log: slog.New(slog.DiscardHandler),
		Clock: time.Now, AutoCreate: func() bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	want := func(what string, unsaved ...string) {
		t.Helper()
		for _, group := range []string{"found", "put", "TOOLS_CONSUMER", "none"} {
			if got := table.Unsaved(group); got != slices.Contains(unsaved, group) {
				t.Errorf("%s: %s unsaved: %v", what, group, got)
			}
		}
	}
	want("at the start")
	files.fail.Store(true)
	table.FindOrCreate("found")
	if err := table.Put(DefaultConfig("put")); err != nil {
		t.Fatal(err)
	}
	want("created", "found", "put")
	failed := make(chan error, 1)
	table.Saved(func(err error) { failed <- err })
	if <-failed == nil {
		t.Fatal("written")
	}
	want("not written", "found", "put")
	files.fail.Store(false)
	saved(t, table)
	want("written")
	if err := table.Put(DefaultConfig("TOOLS_CONSUMER")); err != nil {
		t.Fatal(err)
	}
	want("replaced")
}

func TestFindAllocatesNothing(t *testing.T) {
	auto := true
	table := open(t, filepath.Join(t.TempDir(), "subscriptionGroup.json"), &auto)
	if n := testing.AllocsPerRun(1000, func() { table.Find("TOOLS_CONSUMER") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
