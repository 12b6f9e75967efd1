package crash

import (
	"slices"
	"testing"
)

// goodPops has a message that is acknowledged (1), one that comes again and is acknowledged then (2), one whose invisible
// time is changed (3), and one whose acknowledgement has no answer and was taken (4); and two batches of an orderly group, of which
// the first comes again from 11 on after the kill at 5000.
func goodPops() *PopHistory {
	plain, again, ordered := Place{"P", 0}, Place{"R", 0}, Place{"O", 0}
	sent := func(id int, p Place) *PopSend {
		return &PopSend{Id: id, Place: p, Digest: Digest{uint64(id), uint64(id)}, Outcome: Acknowledged}
	}
	came := func(batch, id int, p Place, offset, pop, due int64, acks ...*PopAck) *Delivery {
		return &Delivery{Id: id, Place: p, Offset: offset, Stored: pop - 10, Digest: Digest{uint64(id), uint64(id)}, Asked: pop - 1, Got: pop + 1, PopTime: pop, Due: due,
			Orderly: p == ordered, Batch: batch, Acks: acks}
	}
	ack := func(at int64) *PopAck { return &PopAck{Outcome: Acknowledged, Sent: at - 1, Answered: at} }
	retried := func(d *Delivery) *Delivery {
		d.Times = 1
		return d
	}
	changed := &PopAck{Change: true, Outcome: Acknowledged, Sent: 1010, Answered: 1012}
	lost := &PopAck{Sent: 1020, Answered: 1500}
	return &PopHistory{
		History: &History{Kills: []Kill{{Millis: 5000}}},
		Messages: []*PopSend{sent(1, plain), sent(2, plain), sent(3, plain), sent(4, plain), sent(10, ordered), sent(11, ordered), sent(12, ordered),
			{Id: 5, Place: plain}},
		Deliveries: []*Delivery{
			came(1, 1, plain, 0, 1000, 3000, ack(1010)),
			came(1, 2, plain, 1, 1000, 3000),
			came(1, 3, plain, 2, 1000, 1500, changed),
			came(1, 4, plain, 3, 1000, 3000, lost),
			retried(came(2, 3, again, 0, 1600, 3600, ack(1610))),
			retried(came(3, 2, again, 1, 3100, 5100, ack(3110))),
			came(4, 10, ordered, 0, 4000, 7000, ack(4010)),
			came(4, 11, ordered, 1, 4000, 7000),
			came(5, 11, ordered, 1, 5500, 8500, ack(5510)),
			came(5, 12, ordered, 2, 5500, 8500, ack(5520)),
		},
	}
}

func TestGoodPops(t *testing.T) {
	v := CheckPops(goodPops(), false)
	for _, c := range v.Cases {
		t.Errorf("%s: %s", c.Rule, c.Text)
	}
	want := []int{7, 7, 10, 3, 6, 1, 1, 0, 0, 0, 0}
	for i, f := range v.Figures {
		if f.N != want[i] {
			t.Errorf("%s: %d, want %d", f.Name, f.N, want[i])
		}
	}
}

// TestEachPopRule: each rule fails for a history that breaks it.
func TestEachPopRule(t *testing.T) {
	seen := tally{}
	for _, c := range []struct {
		name  string
		spoil func(h *PopHistory)
		want  []Rule
	}{
		{"never came", func(h *PopHistory) { h.Deliveries = h.Deliveries[1:] }, []Rule{Unconsumed}},
		{"did not come again", func(h *PopHistory) { h.Deliveries = slices.Delete(h.Deliveries, 5, 6) }, []Rule{Unconsumed}},
		{"acknowledged too late, and did not come again", func(h *PopHistory) {
			h.Deliveries[0].Acks[0].Sent, h.Deliveries[0].Acks[0].Answered = 3001, 3002
		}, []Rule{Unconsumed}},
		{"acknowledged, and there again", func(h *PopHistory) {
			d := *h.Deliveries[0]
			d.Batch, d.Asked, d.Got, d.PopTime, d.Due, d.Acks = 9, 6000, 6002, 6001, 8001, nil
			h.Deliveries = append(h.Deliveries, &d)
		}, []Rule{AckedAgain}},
		{"too early", func(h *PopHistory) { h.Deliveries[5].Got = 2990 }, []Rule{TooEarly}},
		{"too early after a change", func(h *PopHistory) { h.Deliveries[2].Due = 1700 }, []Rule{TooEarly}},
		{"copied twice", func(h *PopHistory) {
			d := *h.Deliveries[5]
			d.Batch, d.Offset, d.Stored = 9, 7, 3090
			h.Deliveries = append(h.Deliveries, &d)
		}, []Rule{CopiedTwice}},
		{"the acknowledgement is refused", func(h *PopHistory) { h.Deliveries[4].Acks[0].Outcome = Refused }, []Rule{AckRefused, Unconsumed}},
		{"another body", func(h *PopHistory) { h.Deliveries[4].Digest.Body++ }, []Rule{Wrong}},
		{"sent by nobody", func(h *PopHistory) { h.Deliveries[4].Id = 77 }, []Rule{Phantom, Unconsumed}},
		{"in order: one is passed over", func(h *PopHistory) { h.Deliveries = slices.Delete(h.Deliveries, 8, 9) }, []Rule{Overtaken, Unconsumed}},
		{"in order: a gap", func(h *PopHistory) { h.Deliveries[9].Offset = 3 }, []Rule{Overtaken}},
		{"in order: beside a batch", func(h *PopHistory) { h.Kills[0].Millis = 9000 }, []Rule{BesideOrderly}},
		{"in order: acknowledged, and there again", func(h *PopHistory) { h.Deliveries[7].Acks = h.Deliveries[6].Acks }, []Rule{AckedAgain}},
	} {
		h := goodPops()
		c.spoil(h)
		seen.check(t, c.name, CheckPops(h, false), c.want)
	}
	seen.whole(t, PopRules)
}

// An acknowledgement of one in the middle counts for its batch, and a kill may leave two copies.
func TestPopsAllowed(t *testing.T) {
	h := goodPops()
	d := *h.Deliveries[5]
	d.Batch, d.Offset, d.Stored, d.PopTime, d.Asked, d.Got = 9, 7, 5050, 5100, 5099, 5101
	d.Acks = nil
	h.Deliveries = append(h.Deliveries, &d)
	if v := CheckPops(h, false); v.Faults() > 0 || v.Figures[10].N != 1 {
		t.Errorf("two copies with a kill between: %v, %v", v.Cases, v.Figures)
	}
	h = goodPops()
	h.Deliveries[8].Acks = nil
	for n, offset := range []int64{1, 2} { // the batch again
		d := *h.Deliveries[8+n]
		d.Batch, d.Asked, d.Got, d.PopTime, d.Due = 10, 8600, 8602, 8601, 9000
		d.Acks = []*PopAck{{Outcome: Acknowledged, Sent: 8650 + offset, Answered: 8650 + offset}}
		h.Deliveries = append(h.Deliveries, &d)
	}
	if v := CheckPops(h, false); v.Faults() > 0 {
		t.Errorf("one in the middle was acknowledged: %v", v.Cases)
	}
	h = goodPops()
	h.Deliveries[0].Acks[0].Sent, h.Deliveries[0].Acks[0].Answered = 3001, 3002
	if v := CheckPops(h, true); v.Faults() > 0 {
		t.Errorf("an acknowledgement after its time, to a server that takes it: %v", v.Cases)
	}
}
