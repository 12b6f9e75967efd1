package commitlog

import (
	"testing"

	"rocketd/protocol/message"
)

// A process that is killed while it writes two records leaves the first bytes of them, any number. What recovery shows is
// whole: a record is there as it was sent, or not at all.
func TestTornWrite(t *testing.T) {
	first, second := msg(0, "first", 0), msg(0, "second", 40)
	bare := msg(0, "bare", 0)
	bare.Properties = ""
	for _, run := range [][]*message.Message{{first, second}, {second, bare}, {bare, first}} {
		o := options()
		l := started(t, o)
		mustAppend(t, l, put(msg(0, "before", 0)))
		start := l.MaxOffset()
		mustAppend(t, l, put(run[0]), put(run[1]))
		middle, end := start+int64(message.RecordSize(run[0])), l.MaxOffset()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		whole := raw(t, o, 0)[start:end]
		for cut := start; cut <= end; cut++ {
			left := make([]byte, len(whole))
			copy(left, whole[:cut-start])
			overwrite(t, o, start, left)
			o.Crashed, o.QueueOffsets = true, newOffsets()
			again, found := recovered(t, o)
			want := 1
			if cut >= middle {
				want++
			}
			// The last bytes of properties that are empty are their length, zero: nothing is missing without them.
			if cut == end || run[1] == bare && cut >= end-2 {
				want++
			}
			if want == 1 && run[0] == bare && cut >= middle-2 {
				want++
			}
			if len(found) != want {
				t.Errorf("%d of %d bytes: %d records, want %d", cut-start, len(whole), len(found), want)
			}
			for i, m := range found[1:] {
				if string(m.Body) != string(run[i].Body) || m.Properties != run[i].Properties || m.Topic != run[i].Topic {
					t.Errorf("%d of %d bytes: %q %q", cut-start, len(whole), m.Body, m.Properties)
				}
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Zeros at the end of properties are no sign of a torn write when something stands behind them, nor after an orderly stop.
func TestPropertiesThatEndInZeros(t *testing.T) {
	odd := msg(0, "odd", 0)
	odd.Properties = "name\x01value\x00\x00"
	for _, c := range []struct {
		name    string
		crashed bool
		behind  int
		want    int
	}{{"last, after a crash", true, 0, 0}, {"not last, after a crash", true, 1, 2}, {"last, after a stop", false, 0, 1}} {
		o := options()
		l := started(t, o)
		mustAppend(t, l, put(odd))
		for range c.behind {
			mustAppend(t, l, put(msg(0, "behind", 0)))
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		o.Crashed, o.QueueOffsets = c.crashed, newOffsets()
		again, found := recovered(t, o)
		if len(found) != c.want {
			t.Errorf("%s: %d records, want %d", c.name, len(found), c.want)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
