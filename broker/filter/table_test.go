package filter

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/compat"
	"rocketd/protocol/body"
	"rocketd/protocol/message"
)

// The numbers and positions of testdata/bloom.txt are what BloomFilter of the official filter module gives.
func TestBloom(t *testing.T) {
	f, err := os.Open("testdata/bloom.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); n++ {
		var want struct {
			F, N, K, M int
			Positions  [][]int
		}
		if err := json.Unmarshal(s.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		b, err := NewBloom(want.F, want.N)
		if err != nil || b.hashes != want.K || b.Bits() != want.M {
			t.Fatalf("%+v: got %+v, %v", want, b, err)
		}
		for i, text := range []string{"CID_group#Topic", "g#t", "一个很长的消费组名#TopicTest-with-a-long-name"} {
			if got := b.positions(text); !slices.Equal(got, want.Positions[i]) {
				t.Errorf("%d %d %s: %v, want %v", want.F, want.N, text, got, want.Positions[i])
			}
		}
	}
	if n != 128 {
		t.Errorf("%d lines", n)
	}
	for _, c := range [][2]int{{0, 32}, {100, 32}, {20, 0}, {20, MaxConsumers + 1}, {-1, -1}} {
		if _, err := NewBloom(c[0], c[1]); err == nil {
			t.Errorf("%v is no error", c)
		}
	}
}

// clock is the time of a test's table.
type clock struct{ ms int64 }

func (c *clock) now() time.Time { return time.UnixMilli(c.ms) }

func openTable(t *testing.T, path string, c *clock, expect int) *Table {
	t.Helper()
	bloom, err := NewBloom(20, expect)
	if err != nil {
		t.Fatal(err)
	}
	table, err := OpenTable(TableOptions{
		Path: path, Files: compat.OSFiles, Clock: c.now, Log: slog.New(slog.DiscardHandler), Bloom: bloom, Compiled: new(Compiled),
		Keep: func() time.Duration { return 24 * time.Hour },
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

func subscription(topic, expression string, version int64) []body.SubscriptionData {
	return []body.SubscriptionData{{Topic: topic, SubString: expression, ExpressionType: TypeSQL92, SubVersion: version}}
}

// TestRestIsTold: an expression that a misspelt word ends counts as officially, and the log says so.
func TestRestIsTold(t *testing.T) {
	table := openTable(t, filepath.Join(t.TempDir(), "consumerFilter.json"), &clock{ms: 1000}, 32)
	var log strings.Builder
	table.o.Log = slog.New(slog.NewTextHandler(&log, nil))
	table.Register("g", subscription("t", "a = 1 AND b = 2", 1))
	if strings.Contains(log.String(), "WARN") {
		t.Error(log.String())
	}
	table.Register("g", subscription("t", "a = 1 ADN b = 2", 2))
	if !strings.Contains(log.String(), `level=WARN`) || !strings.Contains(log.String(), `withoutMeaning="ADN b = 2"`) {
		t.Error(log.String())
	}
	if c := table.Find("t", "g"); c == nil || c.Version != 2 {
		t.Errorf("%+v", c)
	}
}

// The rules of FilterDataMapByTopic#register of 4.9.8, one heartbeat after the other.
func TestRegister(t *testing.T) {
	c := &clock{ms: 1000}
	table := openTable(t, filepath.Join(t.TempDir(), "consumerFilter.json"), c, 32)
	type state struct {
		expression          string
		version, born, dead int64
	}
	for _, step := range []struct {
		what string
		do   func()
		want state
	}{
		{"tags", func() { table.Register("g", []body.SubscriptionData{{Topic: "t", SubString: "*", SubVersion: 1}}) }, state{}},
		{"new", func() { table.Register("g", subscription("t", "a = 1", 5)) }, state{"a = 1", 5, 1000, 0}},
		{"older", func() { table.Register("g", subscription("t", "a = 2", 4)) }, state{"a = 1", 5, 1000, 0}},
		{"same version, other text", func() { table.Register("g", subscription("t", "a = 2", 5)) }, state{"a = 1", 5, 1000, 0}},
		{"newer version, same text", func() { c.ms = 2000; table.Register("g", subscription("t", "a = 1", 6)) }, state{"a = 1", 6, 1000, 0}},
		{"newer text", func() { table.Register("g", subscription("t", "a = 2", 7)) }, state{"a = 2", 7, 2000, 0}},
		{"empty text", func() { table.Register("g", subscription("t", "", 8)) }, state{"a = 2", 7, 2000, 0}},
		{"another topic", func() { c.ms = 3000; table.Register("g", subscription("u", "b = 1", 8)) }, state{"a = 2", 7, 2000, 3000}},
		{"still dead", func() { c.ms = 4000; table.Register("g", subscription("u", "b = 1", 8)) }, state{"a = 2", 7, 2000, 3000}},
		{"dead, older version", func() { table.Register("g", subscription("t", "a = 2", 6)) }, state{"a = 2", 7, 2000, 3000}},
		{"alive again", func() { table.Register("g", subscription("t", "a = 2", 7)) }, state{"a = 2", 7, 2000, 0}},
		{"no member", func() { table.Unregister("g") }, state{"a = 2", 7, 2000, 4000}},
		{"alive with a newer version", func() { table.Register("g", subscription("t", "a = 2", 9)) }, state{"a = 2", 9, 2000, 0}},
		{"expires not while alive", func() { c.ms += 48 * 3600_000; table.Expire() }, state{"a = 2", 9, 2000, 0}},
		{"wrong text", func() { table.Register("g", subscription("t", "a =", 10)) }, state{}},
		{"right again", func() { table.Register("g", subscription("t", "a = 3", 9)) }, state{"a = 3", 9, c0 + 48*3600_000, 0}},
		{"unknown type", func() {
			table.Register("g", []body.SubscriptionData{{Topic: "t", SubString: "a = 3", ExpressionType: "X", SubVersion: 11}})
		}, state{}},
		{"dies", func() {
			table.Register("g", subscription("t", "a = 3", 11))
			table.Unregister("g")
			table.Unregister("none")
		}, state{"a = 3", 11, c0 + 48*3600_000, c0 + 48*3600_000}},
		{"not yet expired", func() { c.ms += 24*3600_000 - 1; table.Expire() }, state{"a = 3", 11, c0 + 48*3600_000, c0 + 48*3600_000}},
		{"expired", func() { c.ms++; table.Expire() }, state{}},
	} {
		step.do()
		var got state
		if f := table.Find("t", "g"); f != nil {
			got = state{f.Expression, f.Version, f.BornTime, f.DeadTime}
		}
		if got != step.want {
			t.Errorf("%s: %+v, want %+v", step.what, got, step.want)
		}
	}
	if len(table.mu.topics) != 0 || len(table.mu.groups) != 0 {
		t.Errorf("left: %v %v", table.mu.topics, table.mu.groups)
	}
}

// c0 is the time before the clock of TestRegister leaps.
const c0 = 4000

// The official broker's file is read, and written again as it was.
func TestOfficialFile(t *testing.T) {
	official, err := os.ReadFile("testdata/consumerFilter.json")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "consumerFilter.json")
	if err := os.WriteFile(path, official, 0o644); err != nil {
		t.Fatal(err)
	}
	c := &clock{ms: 1795996700000}
	table := openTable(t, path, c, 32)
	f := table.Find("SqlBits", "G-SqlBits-1")
	if f == nil || !f.MatchProperties("a\x015") || f.MatchProperties("a\x011") || f.Version != 7 || !f.dead() {
		t.Fatalf("%+v", f)
	}
	if got, err := table.encode(); err != nil || string(got) != string(official) {
		t.Errorf("%v\n%s", err, got)
	}
	if !strings.Contains(f.Text(), `"bitPos":[78,71,109]`) {
		t.Error(f.Text())
	}

	// Who was alive then counts as dead since 30 s, until he is heard of.
	alive := strings.Replace(string(official), `"deadTime":1795996664033`, `"deadTime":0`, 1)
	if err := os.WriteFile(path, []byte(alive), 0o644); err != nil {
		t.Fatal(err)
	}
	table = openTable(t, path, c, 32)
	if f := table.Find("SqlBits", "G-SqlBits-1"); f == nil || f.DeadTime != 1795996670000 {
		t.Errorf("%+v", f)
	}

	// With other settings of the bloom filter nothing of the file holds, and what cannot be compiled is left out.
	if table = openTable(t, path, c, 100); len(table.mu.topics) != 0 {
		t.Errorf("%v", table.mu.topics)
	}
	broken := strings.Replace(string(official), `"a > 1"`, `"a >"`, 1)
	if err := os.WriteFile(path, []byte(broken), 0o644); err != nil {
		t.Fatal(err)
	}
	table = openTable(t, path, c, 32)
	if table.Find("SqlBits", "G-SqlBits-1") != nil || table.Find("SqlBits", "G-SqlBits-2") == nil {
		t.Errorf("%v", table.mu.topics)
	}
	for _, odd := range []string{`{"filterDataByTopic":{"t":null,"u":{"groupFilterData":{"g":null}}}}`, `{}`} {
		if err := table.decode([]byte(odd)); err != nil {
			t.Errorf("%s: %v", odd, err)
		}
	}
}

// The bits of a message let through exactly whom its expressions take (here no two share all of their bits), those who came after
// it, and those of another size.
func TestBits(t *testing.T) {
	c := &clock{ms: 1000}
	table := openTable(t, filepath.Join(t.TempDir(), "consumerFilter.json"), c, 32)
	if bits := table.Bits(make([]byte, 0, 64), "t", "a\x011"); len(bits) != 0 {
		t.Errorf("bits without consumers: %v", bits)
	}
	for group, expression := range map[string]string{"one": "a = 1", "two": "a = 2", "any": "a IS NOT NULL", "fault": "a > 'x' = TRUE"} {
		table.Register(group, subscription("t", expression, 1))
	}
	dst := make([]byte, 14, 64)[:0]
	for i := range dst[:14] {
		dst[:14][i] = 0xff // what an earlier message has left
	}
	bits := table.Bits(dst, "t", "a\x011")
	if len(bits) != 14 {
		t.Fatalf("%d bytes", len(bits))
	}
	for group, want := range map[string]bool{"one": true, "two": false, "any": true} {
		f := table.Find("t", group)
		if got := f.MatchUnit(1001, bits); got != want {
			t.Errorf("%s: %v", group, got)
		}
		if !f.MatchUnit(1000, bits) || !f.MatchUnit(1001, nil) || !f.MatchUnit(1001, bits[:13]) {
			t.Errorf("%s: excluded without being asked", group)
		}
	}
	if table.Find("t", "fault") != nil {
		t.Error("a wrong expression is kept")
	}
	table.Register("one", subscription("u", "a = 1", 1)) // one: the race detector lets sync.Pool lose some
	if n := testing.AllocsPerRun(100, func() { bits = table.Bits(bits[:0], "u", "a\x011") }); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

// A subscription is compiled when it is new or changed, and not with each heartbeat; the expression is too long to be remembered
// beside its consumer.
func TestCompiledOnce(t *testing.T) {
	table := openTable(t, filepath.Join(t.TempDir(), "consumerFilter.json"), &clock{ms: 1000}, 32)
	long := "a = '" + strings.Repeat("x", compiledLength) + "'"
	compiled := func(expression string, version int64) any {
		table.Register("g", subscription("t", expression, version))
		return table.Find("t", "g").compiled
	}
	first := compiled(long, 1)
	for what, version := range map[string]int64{"the same": 1, "an older": 0, "a newer": 2} {
		if compiled(long, version) != first {
			t.Errorf("%s version is compiled again", what)
		}
	}
	table.Unregister("g")
	if compiled(long, 2) != first {
		t.Error("who is back is compiled again")
	}
	if compiled(long+" OR b = 1", 3) == first {
		t.Error("another expression is not compiled")
	}
}

func TestRetry(t *testing.T) {
	table := openTable(t, filepath.Join(t.TempDir(), "consumerFilter.json"), &clock{ms: 1000}, 32)
	table.Register("g", subscription("t", "a = 1", 1))
	r := &Retry{Group: "g", Table: table}
	for properties, want := range map[string]bool{
		"RETRY_TOPIC\x01t\x02a\x011": true, "RETRY_TOPIC\x01t\x02a\x012": false, "RETRY_TOPIC\x01u\x02a\x012": true, "a\x012": true, "": true,
	} {
		if got := r.MatchProperties(properties); got != want {
			t.Errorf("%q: %v", properties, got)
		}
	}
	m := message.Message{Topic: "%RETRY%g", Properties: "RETRY_TOPIC\x01t\x02a\x012"}
	if r.MatchRecord(message.Record(message.AppendRecord(nil, &m))) || !r.MatchQueue(1) {
		t.Error("a record is taken that its topic's expression excludes")
	}
}

func TestCompiled(t *testing.T) {
	var c Compiled
	first, err := c.Compile("a = 1")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := c.Compile("a = 1"); again != first {
		t.Error("compiled again")
	}
	_, wrong := c.Compile("a =")
	if _, err := c.Compile("a ="); err == nil || err != wrong {
		t.Errorf("%v, then %v", wrong, err)
	}
	for i := range 3 * compiledHalf {
		if _, err := c.Compile("a = " + strings.Repeat("1", i%9+1) + strings.Repeat(" ", i/9)); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.new)+len(c.last) > 2*compiledHalf {
		t.Errorf("%d are remembered", len(c.new)+len(c.last))
	}
	if again, err := c.Compile("a = 1"); err != nil || again == first {
		t.Error("never forgotten")
	}
	long := "a = '" + strings.Repeat("x", compiledLength) + "'"
	one, _ := c.Compile(long)
	if two, _ := c.Compile(long); one == two {
		t.Error("a long expression is remembered")
	}
}

func BenchmarkBits(b *testing.B) {
	bloom, _ := NewBloom(20, 32)
	table := &Table{o: TableOptions{Bloom: bloom}}
	table.mu.topics, table.mu.groups = map[string]map[string]*Consumer{}, map[string]map[string]*Consumer{}
	for _, group := range []string{"a", "b", "c", "d"} {
		e, err := new(Compiled).Compile("price > 10 AND region = '" + group + "'")
		if err != nil {
			b.Fatal(err)
		}
		table.putLocked(&Consumer{Topic: "t", Group: group, Place: bloom.place(group, "t"), compiled: e})
	}
	var bits []byte
	b.ReportAllocs()
	for b.Loop() {
		bits = table.Bits(bits[:0], "t", "KEYS\x01k\x02price\x0111\x02region\x01c")
	}
}
