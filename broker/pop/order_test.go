package pop

import (
	"strings"
	"testing"
	"time"
)

func TestOrderlyBatch(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		q := b.queue(queueT)
		at := time.Now().UnixMilli()
		if s := string(b.PoppedOrderly(q, "one", at, 4000, []int64{5, 6, 8}, nil)); s != "0 0 0" {
			t.Errorf("counts %q", s)
		}
		busy := func(want time.Duration, attempt string) {
			t.Helper()
			var until int64
			if want > 0 {
				until = at + want.Milliseconds()
			}
			if got := b.Busy(q, 5, attempt, 0); got != until {
				t.Errorf("busy until %d, want %d", got-at, want.Milliseconds())
			}
		}
		busy(4*time.Second, "")
		busy(4*time.Second, "two")
		busy(0, "one")
		ack := func(offset, popTime int64, want OrderAck, next int64) {
			t.Helper()
			if what, at := b.AckedOrderly(q, 5, offset, popTime); what != want || at != next {
				t.Errorf("ack of %d: %v, %d, want %v, %d", offset, what, at, want, next)
			}
		}
		ack(6, at, OrderAdvanced, 5)
		ack(5, at+1, OrderNone, 0)
		ack(7, at, OrderIllegal, 0)
		b.ChangedOrderly(q, 8, at, at+9000)
		busy(9*time.Second, "")
		ack(5, at, OrderAdvanced, 8)
		ack(8, at, OrderAdvanced, 9)
		busy(0, "")
		pass(10 * time.Second)
		b.PoppedOrderly(q, "", at+10_000, 1000, []int64{8, 9}, nil)
		if s := string(b.PoppedOrderly(q, "", at+12_000, 1000, []int64{8, 9, 10}, []byte("x"))); s != "x;0 qo0%8 2;0 qo0%9 1;0 0 0" {
			t.Errorf("counts %q", s)
		}
	})
}

// A batch that was popped without an invisible time is barred for that of the pop that comes next, from its own pop on.
func TestOrderWithoutInvisibleTime(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		q := b.queue(queueT)
		at := time.Now().UnixMilli()
		b.PoppedOrderly(q, "one", at, 0, []int64{5}, nil)
		for _, c := range []struct {
			attempt         string
			invisible, want int64
		}{{"", 0, 0}, {"one", 4000, 0}, {"two", 4000, at + 4000}, {"three", 9000, at + 4000}, {"", 0, at + 4000}} {
			if got := b.Busy(q, 5, c.attempt, c.invisible); got != c.want {
				t.Errorf("%+v: busy until %d", c, got)
			}
		}
		pass(4 * time.Second)
		if got := b.Busy(q, 5, "", 1000); got != 0 {
			t.Errorf("busy until %d afterwards", got)
		}
	})
}

// A kill takes the newest batches with it, and leaves an older one, as the file has it, beside where the group stands: no
// acknowledgement passes over a message, or takes the group back.
func TestOrderAfterKill(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		forgotten := b.queue(Key{"T", "fresh", 0})
		for _, c := range []struct {
			at, offset int64
			want       OrderAck
			next       int64
		}{{7, 7, OrderAdvanced, 8}, {6, 7, OrderNone, 0}, {-1, 0, OrderNone, 0}} {
			if what, next := b.AckedOrderly(forgotten, c.at, c.offset, 1); what != c.want || next != c.next {
				t.Errorf("forgotten: the group stands at %d, ack of %d: %v, %d", c.at, c.offset, what, next)
			}
		}
		q, now := b.queue(queueT), time.Now().UnixMilli()
		b.PoppedOrderly(q, "", now, 60_000, []int64{5, 6, 7}, nil)
		if what, next := b.AckedOrderly(q, 7, 7, now); what != OrderAdvanced || next != 8 {
			t.Errorf("the group stands at 7, ack of 7: %v, %d", what, next)
		}
		if until := b.Busy(q, 5, "", 0); until != 0 {
			t.Errorf("busy until %d", until)
		}
		b.PoppedOrderly(q, "", now, 60_000, []int64{8, 9}, nil)
		if b.Busy(q, 9, "", 0) == 0 || b.Busy(q, 10, "", 0) != 0 {
			t.Errorf("busy until %d and %d", b.Busy(q, 9, "", 0), b.Busy(q, 10, "", 0))
		}
	})
}

// official is what the official 5.3.3 wrote for a batch of two that was acknowledged, in its consumerOrderInfo.json.
const official = `{"table":{"PT@OG1":{1:{"cm":3,"i":4000,"l":1795977922397,"o":[0,1],"oc":{0:1,1:1},"popTime":1795977922393}}}}`

func TestOrderFile(t *testing.T) {
	started(t, 0, func(t *testing.T, b *bed) {
		if err := b.DecodeOrders([]byte(official)); err != nil {
			t.Fatal(err)
		}
		o := b.Known(Key{"PT", "OG1", 1}).order
		o.consumed = time.Now().UnixMilli()
		if o.acked != 3 || o.popTime != 1795977922393 || o.invisible != 4000 || o.counts[1] != 1 || len(o.offsets) != 2 || o.offsets[1] != 1 {
			t.Errorf("read: %+v", o)
		}
		b.PoppedOrderly(b.queue(queueT), "id", 5, 6, []int64{10, 12}, nil)
		b.ChangedOrderly(b.queue(queueT), 12, 5, 77)
		text, err := b.EncodeOrders()
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.NewReplacer("\n", "", "\t", "").Replace(string(text))
		for _, want := range []string{`"PT@OG1":{1:{"cm":3,"i":4000,"l":`, `"o":[0,1],"oc":{0:1,1:1},"popTime":1795977922393}`,
			`"T@G":{0:{"a":"id","cm":0,"i":6,"l":`, `"o":[10,2],"ot":{12:77},"popTime":5}`} {
			if !strings.Contains(plain, want) {
				t.Errorf("%s lacks %s", plain, want)
			}
		}
		if !b.OrdersChanged() || b.OrdersChanged() {
			t.Error("changed is told once")
		}
		c := newBed(t, b.store)
		c.open(0)
		defer c.Close()
		if err := c.DecodeOrders(text); err != nil {
			t.Fatal(err)
		}
		if o := c.Known(queueT).order; o.attemptId != "id" || o.offsets[1] != 12 || o.visible[12] != 77 {
			t.Errorf("read again: %+v", o)
		}
		pass(25 * time.Hour)
		if text, _ = b.EncodeOrders(); strings.Contains(string(text), "PT@OG1") {
			t.Errorf("kept for ever: %s", text)
		}
		for _, bad := range []string{`{"table":{"x":{0:{"o":[1]}}}}`, `{"table":{"T@B":{0:{"o":[]},1:null}}}`, `{}`} {
			if err := c.DecodeOrders([]byte(bad)); err != nil {
				t.Errorf("%s: %v", bad, err)
			}
		}
		if c.Known(Key{"T", "B", 0}) != nil {
			t.Error("an empty batch was taken")
		}
	})
}
