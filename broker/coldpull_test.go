package broker

import (
	"fmt"
	"testing"

	"rocketd/protocol"
	"rocketd/remoting/remotingtest"
)

// TestColdPulls: a consumer far behind is served elsewhere from its second pull on, with the same answers.
func TestColdPulls(t *testing.T) {
	b := startPathBroker(t, nil)
	b.path.cold.behind = 2000 // bytes: all but the last messages are cold
	const n = 60
	for i := range n {
		b.send("T", 0, "", fmt.Sprint(i))
	}
	remotingtest.Eventually(t, "dispatched", func() bool { return b.store.MaxOffset("T", 0) == n })
	at := int64(0)
	for at < n {
		h := pullHeader("T", 0, at)
		h.MaxMsgNums, h.SysFlag, h.CommitOffset = 5, h.SysFlag|pullCommitOffset, at
		a := b.ask(protocol.PullMessage, h, nil)
		if a.Code != 0 {
			t.Fatalf("at %d: code %d, %q", at, a.Code, a.Remark)
		}
		for _, m := range b.messages(a) {
			if string(m.Body) != fmt.Sprint(at) {
				t.Fatalf("place %d has %s", at, m.Body)
			}
			at++
		}
		if o, _ := b.offsets.Query("CG", "T", 0); o != h.CommitOffset {
			t.Errorf("committed %d, want %d", o, h.CommitOffset)
		}
	}
	if got := b.path.cold.taken.Load(); got < 5 || got > 10 {
		t.Errorf("%d of 12 pulls ran elsewhere", got)
	}
	if p := b.path.cold; p.expects(coldPlace{nil, "T", 0, at}) {
		t.Error("a pull at the end is expected to be cold")
	}
}

// TestColdPullsAreBounded: past the bound a pull runs where it came.
func TestColdPullsAreBounded(t *testing.T) {
	p := newColdPulls()
	release := make(chan struct{})
	for range coldWorkers {
		if !p.run(func() { <-release }) {
			t.Fatal("no room")
		}
	}
	if p.run(func() {}) {
		t.Error("room for one more")
	}
	close(release)
	p.close()
	if p.run(func() {}) {
		t.Error("room after close")
	}
}

func BenchmarkColdExpects(b *testing.B) {
	p := newColdPulls()
	b.ReportAllocs()
	for b.Loop() {
		p.expects(coldPlace{nil, "TopicOfUsualLength", 3, 12345})
	}
}

// TestColdAfterRestart: the first pull of what an earlier process has stored runs elsewhere too; one of what this process
// has stored does not.
func TestColdAfterRestart(t *testing.T) {
	b := startPathBroker(t, nil)
	b.send("T", 0, "", "old")
	remotingtest.Eventually(t, "dispatched", func() bool { return b.store.MaxOffset("T", 0) == 1 })
	b.close()
	b = startPathBrokerOn(t, b.fs, nil)
	b.send("T", 0, "", "new")
	remotingtest.Eventually(t, "dispatched", func() bool { return b.store.MaxOffset("T", 0) == 2 })
	for at, want := range []string{"old", "new"} {
		before := b.path.cold.taken.Load()
		ms := b.messages(b.ask(protocol.PullMessage, pullHeader("T", 0, int64(at)), nil))
		if len(ms) == 0 || string(ms[0].Body) != want {
			t.Fatalf("place %d has %v", at, ms)
		}
		if taken := b.path.cold.taken.Load() - before; taken != int64(1-at) {
			t.Errorf("%s: %d pulls ran elsewhere", want, taken)
		}
	}
}
