package topics

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rocketd/compat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at is the time of every change in these tests.
var at = time.UnixMilli(1_700_000_000_000)

// open opens a table whose file lies at path; change may change its options.
func open(t *testing.T, path string, change func(*Options)) *Table {
	t.Helper()
	o := Options{
		Path: path, Files: compat.OSFiles, Clock: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler),
		AutoCreate: func() bool { return true },
		System:     System{Cluster: "DefaultCluster", ClusterEnable: true, Broker: "broker-a", BrokerEnable: true, DefaultQueueNums: 8},
	}
	if change != nil {
		change(&o)
	}
	table, err := Open(o)
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

// saved waits until the table's file is written.
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

// The system topics of TopicConfigManager of 4.9.8.
func TestSystemTopics(t *testing.T) {
	table := open(t, filepath.Join(t.TempDir(), "topics.json"), func(o *Options) { o.System.Trace = Trace })
	want := map[string][2]int32{ // queues, perm
		"TBW102": {8, 7}, "SELF_TEST_TOPIC": {1, 6}, "BenchmarkTest": {1024, 6}, "DefaultCluster": {16, 7},
		"broker-a": {1, 7}, "OFFSET_MOVED_EVENT": {1, 6}, "SCHEDULE_TOPIC_XXXX": {18, 6},
		"RMQ_SYS_TRACE_TOPIC": {1, 6}, "DefaultCluster_REPLY_TOPIC": {1, 6},
	}
	all, version := table.All()
	if len(all) != len(want) {
		t.Errorf("%d topics, want %d", len(all), len(want))
	}
	for _, c := range all {
		w, ok := want[c.TopicName]
		if !ok || c.ReadQueueNums != w[0] || c.WriteQueueNums != w[0] || c.Perm != w[1] || c.TopicFilterType != "SINGLE_TAG" {
			t.Errorf("%+v, want queues and perm %v", *c, w)
		}
	}
	if version.Counter != 0 || version.Timestamp != at.UnixMilli() {
		t.Errorf("version %+v", version)
	}
	for _, topic := range []string{"TBW102", "broker-a", "DefaultCluster", "DefaultCluster_REPLY_TOPIC", "rmq_sys_x", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC"} {
		if !table.IsSystem(topic) {
			t.Errorf("%s is no system topic", topic)
		}
	}
	for _, topic := range []string{"TopicA", "RMQ_SYS_x", "rmq_sys", "broker-b"} {
		if table.IsSystem(topic) {
			t.Errorf("%s is a system topic", topic)
		}
	}
}

func TestSystemTopicsSwitchedOff(t *testing.T) {
	table := open(t, filepath.Join(t.TempDir(), "topics.json"), func(o *Options) {
		o.AutoCreate = func() bool { return false }
		o.System.ClusterEnable, o.System.BrokerEnable = false, false
	})
	if _, ok := table.Lookup("TBW102"); ok {
		t.Error("TBW102 exists without auto-creation")
	}
	for _, topic := range []string{"DefaultCluster", "broker-a"} {
		if c, _ := table.Lookup(topic); c == nil || c.Perm != 1 {
			t.Errorf("%s: %+v, want perm 1", topic, c)
		}
	}
	if c, created := table.CreateBySend("TopicA", "TBW102", 4, 0); c != nil || created {
		t.Errorf("created %+v", c)
	}
}

// The rules of TopicConfigManager#createTopicInSendMessageMethod and #createTopicInSendMessageBackMethod of 4.9.8.
func TestCreateBySend(t *testing.T) {
	for _, tt := range []struct {
		name, model string
		queues      int32
		auto        bool
		wantQueues  int32 // -1 = not created
		wantPerm    int32
	}{
		{"client's number", "TBW102", 4, true, 4, 6},
		{"no more than the model", "TBW102", 100, true, 8, 6},
		{"negative", "TBW102", -3, true, 0, 6},
		{"cluster-named", "DefaultCluster", 100, true, 16, 6},
		{"unknown model", "nothing", 4, true, -1, 0},
		{"model without inherit bit", "BenchmarkTest", 4, true, -1, 0},
		{"switched off while TBW102 exists", "TBW102", 4, false, -1, 0},
		{"switched off, another model", "broker-a", 4, false, 1, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			auto := true
			var told []string
			table := open(t, filepath.Join(t.TempDir(), "topics.json"), func(o *Options) {
				o.AutoCreate = func() bool { return auto }
				o.Changed = func(c *Config) { told = append(told, c.TopicName) }
			})
			auto = tt.auto
			c, created := table.CreateBySend("TopicA", tt.model, tt.queues, FlagUnit)
			if tt.wantQueues < 0 {
				if c != nil || created || len(told) > 0 {
					t.Fatalf("created %+v, told %v", c, told)
				}
				return
			}
			want := Config{TopicName: "TopicA", ReadQueueNums: tt.wantQueues, WriteQueueNums: tt.wantQueues,
				Perm: tt.wantPerm, TopicFilterType: "SINGLE_TAG", TopicSysFlag: 1}
			if c == nil || !reflect.DeepEqual(*c, want) || !created {
				t.Fatalf("%+v, %v; want %+v", c, created, want)
			}
			if !slices.Equal(told, []string{"TopicA"}) {
				t.Errorf("told %v", told)
			}
			if v := table.Version(); v.Counter != 1 {
				t.Errorf("version %+v", v)
			}
			if again, created := table.CreateBySend("TopicA", "nothing", 1, 0); again != c || created {
				t.Errorf("second time %+v, %v", again, created)
			}
		})
	}
	t.Run("template loses its inherit bit", func(t *testing.T) {
		auto := true
		table := open(t, filepath.Join(t.TempDir(), "topics.json"), func(o *Options) { o.AutoCreate = func() bool { return auto } })
		auto = false
		table.CreateBySend("TopicA", "TBW102", 4, 0)
		if c, _ := table.Lookup("TBW102"); c.Perm != 6 {
			t.Errorf("perm %d, want 6", c.Perm)
		}
	})
}

func TestCreateBySendBack(t *testing.T) {
	table := open(t, filepath.Join(t.TempDir(), "topics.json"), nil)
	c, created := table.CreateBySendBack("%RETRY%G", 3, 6, FlagUnitSub)
	if !created || !reflect.DeepEqual(*c, Config{TopicName: "%RETRY%G", ReadQueueNums: 3, WriteQueueNums: 3, Perm: 6, TopicFilterType: "SINGLE_TAG", TopicSysFlag: 2}) {
		t.Fatalf("%+v, %v", c, created)
	}
	if again, created := table.CreateBySendBack("%RETRY%G", 9, 2, 0); again != c || created {
		t.Errorf("second time %+v, %v", again, created)
	}
}

// A group's name may make no topic whose folder would lie elsewhere.
func TestIllegalNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "topics.json")
	text := `{"dataVersion":{"counter":1,"timestamp":2},"topicConfigTable":{"../x":{"topicName":"../x"},"y":{"topicName":"y"}}}`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	table := open(t, path, nil)
	for _, topic := range []string{"%RETRY%../../x", "%RETRY%a/b", "%DLQ%a b", ""} {
		if c, created := table.CreateBySendBack(topic, 1, 6, 0); c != nil || created {
			t.Errorf("%q: %+v", topic, c)
		}
		if c, created := table.CreateBySend(topic, "TBW102", 1, 0); c != nil || created {
			t.Errorf("%q: %+v", topic, c)
		}
	}
	if _, ok := table.Lookup("../x"); ok {
		t.Error("an illegal name was taken from the file")
	}
	if _, ok := table.Lookup("y"); !ok {
		t.Error("y is lost")
	}
	long := "%RETRY%" + strings.Repeat("g", 255)
	if c, created := table.CreateBySendBack(long, 1, 6, 0); c == nil || !created {
		t.Error("the retry topic of a long group was refused")
	}
}

func TestOrderFlags(t *testing.T) {
	table := open(t, filepath.Join(t.TempDir(), "topics.json"), nil)
	a, _ := table.CreateBySend("A", "TBW102", 1, 0)
	table.CreateBySend("B", "TBW102", 1, 0)
	if !table.SetOrder(map[string]string{"A": "broker-a:4", "C": "broker-a:1"}) {
		t.Error("nothing changed")
	}
	if table.SetOrder(map[string]string{"A": "broker-a:4"}) {
		t.Error("changed again")
	}
	if c, _ := table.Lookup("A"); !c.Order || a.Order {
		t.Errorf("A now %+v, before %+v", *c, *a)
	}
	if !table.SetOrder(map[string]string{}) {
		t.Error("nothing cleared")
	}
	if c, _ := table.Lookup("A"); c.Order {
		t.Error("A is still ordered")
	}
	if v := table.Version(); v.Counter != 4 {
		t.Errorf("version %+v", v)
	}
}

// The exact bytes that the official broker writes, with the system topics taken away.
func TestFileBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config", "topics.json")
	table := open(t, path, nil)
	for _, name := range append(table.System(), "x") {
		table.Delete(name)
	}
	table.Put(&Config{TopicName: "TopicA", ReadQueueNums: 8, WriteQueueNums: 8, Perm: 6, TopicFilterType: "SINGLE_TAG"})
	saved(t, table)
	want := `{
	"dataVersion":{
		"counter":9,
		"timestamp":1700000000000
	},
	"topicConfigTable":{
		"TopicA":{
			"order":false,
			"perm":6,
			"readQueueNums":8,
			"topicFilterType":"SINGLE_TAG",
			"topicName":"TopicA",
			"topicSysFlag":0,
			"writeQueueNums":8
		}
	}
}`
	if got, _ := os.ReadFile(path); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The fast encoder makes what the general one makes.
func TestEncoder(t *testing.T) {
	table := open(t, filepath.Join(t.TempDir(), "topics.json"), nil)
	same := func(what string) {
		t.Helper()
		want, err := compat.MarshalPretty(table.Wrapper())
		if err != nil {
			t.Fatal(err)
		}
		got, err := table.encode()
		if err != nil || !slices.Equal(lines(got), lines(want)) || len(got) != len(want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", what, err, got, want)
		}
	}
	same("system topics")
	table.Put(&Config{TopicName: "%RETRY%a|b", ReadQueueNums: -1, WriteQueueNums: 3, Perm: 2, TopicFilterType: "MULTI_TAG", TopicSysFlag: 3, Order: true})
	table.Put(&Config{TopicName: "odd", TopicFilterType: "a\"\t\u00e4"})
	same("odd topics")
	for _, name := range append(table.System(), "%RETRY%a|b", "odd") {
		table.Delete(name)
	}
	same("no topics")
}

// What an official broker has written is understood and written again with the same lines.
func TestOfficialFile(t *testing.T) {
	official, err := os.ReadFile("testdata/official.json")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "topics.json")
	if err := os.WriteFile(path, official, 0o644); err != nil {
		t.Fatal(err)
	}
	table := open(t, path, func(o *Options) { o.System.Cluster, o.System.Broker = "OracleCluster", "oracle-a" })
	if c, ok := table.Lookup("StoreTopic"); !ok || c.ReadQueueNums != 4 {
		t.Errorf("StoreTopic: %+v", c)
	}
	if v := table.Version(); v.Counter != 7 || v.Timestamp != 1795978555135 {
		t.Errorf("version %+v", v)
	}
	saved(t, table)
	got, _ := os.ReadFile(path)
	if g, w := lines(got), lines(official); !slices.Equal(g, w) {
		t.Errorf("written again:\n%s\nofficial:\n%s", got, official)
	}
	if bak, _ := os.ReadFile(path + ".bak"); !bytes.Equal(bak, official) {
		t.Error("the .bak file is not what was there before")
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

func TestRestartAndBackup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "topics.json")
	table := open(t, path, nil)
	table.CreateBySend("First", "TBW102", 4, 0)
	saved(t, table)
	table.Delete("First")
	table.CreateBySend("Second", "TBW102", 4, 0)
	saved(t, table)
	version := table.Version()

	again := open(t, path, nil)
	if _, ok := again.Lookup("Second"); !ok || again.Version() != version {
		t.Errorf("after a restart: Second %v, version %+v, want %+v", ok, again.Version(), version)
	}
	if _, ok := again.Lookup("First"); ok {
		t.Error("First is back")
	}
	before, err := os.ReadFile(path + ".bak")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil { // writes the table, which has not changed
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path + ".bak"); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the backup was replaced: %v", err)
	}
	for _, broken := range []string{"", "{", "null", "[]", `{"dataVersion":{"counter":1}}`} {
		dir := filepath.Join(t.TempDir(), "topics.json")
		if err := os.WriteFile(dir, []byte(broken), 0o644); err != nil {
			t.Fatal(err)
		}
		bak, _ := os.ReadFile(path + ".bak")
		if err := os.WriteFile(dir+".bak", bak, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, ok := open(t, dir, nil).Lookup("First"); !ok {
			t.Errorf("file %q: the backup was not taken", broken)
		}
	}
	for _, name := range []string{path, path + ".bak"} {
		if err := os.WriteFile(name, []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := open(t, path, nil).Lookup("First"); ok {
		t.Error("both files broken: First is there")
	}
	for _, name := range []string{path, path + ".bak"} {
		if kept, err := filepath.Glob(name + ".damaged-*"); err != nil || len(kept) != 1 {
			t.Errorf("%s is not kept aside: %v, %v", name, kept, err)
		}
	}
}

func TestNames(t *testing.T) {
	long := string(bytes.Repeat([]byte("x"), 127))
	for topic, want := range map[string]error{
		"TopicA": nil, "%RETRY%a|b_c-9": nil, long: nil,
		"": ErrBlank, " \t": ErrBlank, "a.b": ErrIllegal, "a/b": ErrIllegal, "..": ErrIllegal, "Thema-ä": ErrIllegal,
		"a b": ErrIllegal, "a\x00": ErrIllegal, long + "x": ErrTooLong, long + ".": ErrIllegal,
	} {
		if err := Validate(topic); err != want {
			t.Errorf("%q: %v, want %v", topic, err, want)
		}
	}
}

func TestConcurrentCreation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "topics.json")
	table := open(t, path, nil)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 200 {
				name := fmt.Sprintf("T-%d", (i*7+g)%150)
				if c, _ := table.CreateBySend(name, "TBW102", 4, 0); c.TopicName != name {
					t.Errorf("%s: %+v", name, c)
				}
				table.Saved(nil)
			}
		}()
	}
	wg.Wait()
	saved(t, table)
	if v := table.Version(); v.Counter != 150 {
		t.Errorf("version %+v, want 150 changes", v)
	}
	if all, _ := open(t, path, nil).All(); len(all) != 150+8 {
		t.Errorf("%d topics in the file, want 158", len(all))
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	table := open(t, filepath.Join(t.TempDir(), "topics.json"), nil)
	if n := testing.AllocsPerRun(1000, func() { table.Lookup("BenchmarkTest"); table.Lookup("none") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	o := Options{Path: filepath.Join(b.TempDir(), "topics.json"), Files: compat.OSFiles, Clock: time.Now,
		Log: slog.New(slog.DiscardHandler), AutoCreate: func() bool { return true }}
	table, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	defer table.Close()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			table.Lookup("BenchmarkTest")
		}
	})
}
