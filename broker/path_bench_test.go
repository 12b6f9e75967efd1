package broker

import (
	"sync"
	"testing"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

// captured are requests that a server has taken up and that nobody has answered yet.
type captured[Req any] struct {
	calls []*remoting.Call
	reqs  []*Req
}

// capture makes n calls of a request, as a handler gets them: their answers go to a connection that reads them.
func capture[Req any](tb testing.TB, n int, code protocol.RequestCode, h any, body []byte) captured[Req] {
	tb.Helper()
	var c captured[Req]
	var mu sync.Mutex
	mux := remoting.NewMux(nil)
	remoting.HandleRun(mux, []protocol.RequestCode{code}, func(calls []*remoting.Call, reqs []*Req) {
		mu.Lock()
		defer mu.Unlock()
		c.calls, c.reqs = append(c.calls, calls...), append(c.reqs, reqs...)
	})
	cfg := remotingtest.Config()
	cfg.PendingRequestsBusy, cfg.PendingRequestsClose, cfg.UnreadBytesBusy, cfg.UnreadBytesClose = 0, 0, 0, 0
	cfg.QueuedBytesBusy, cfg.QueuedBytesClose = 0, 0
	s := remotingtest.StartWith(tb, cfg, mux, remoting.Events{})
	p := remotingtest.Dial(tb, remotingtest.Addr(s))
	for i := range n {
		r := protocol.NewRequest(code, h, body)
		r.Opaque, r.Serialize = int32(i), protocol.Binary
		p.Send(r)
	}
	remotingtest.Eventually(tb, "all are taken up", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(c.calls) == n
	})
	go func() {
		buf := make([]byte, 64<<10)
		for {
			if _, err := p.Conn.Read(buf); err != nil {
				return
			}
		}
	}()
	return c
}

const benchProperties = "UNIQ_KEY=7F000001000018B4AAC20A1B2C3D0000|WAIT=true|TAGS=TagA"

// TestSendAllocations: a send costs nearly nothing beside its request and record.
func TestSendAllocations(t *testing.T) {
	if raceOn {
		t.Skip("allocations are not those of the product")
	}
	b := startPathBroker(t, nil)
	b.send("T", 0, "", "x")
	const run, runs = 32, 20
	c := capture[header.SendMessageRequest](t, run*(runs+2), protocol.SendMessageV2, sendHeader("T", 0, benchProperties), make([]byte, 128))
	i := 0
	n := testing.AllocsPerRun(runs, func() {
		b.Broker.send(c.calls[i:i+run], c.reqs[i:i+run])
		i += run
	})
	if per := n / run; per > 0.5 {
		t.Errorf("%.2f allocations a send in runs of %d, want at most 0.5", per, run)
	}
}

// TestPullAllocations: a pull allocates its body, its answer's header and its filter.
func TestPullAllocations(t *testing.T) {
	if raceOn {
		t.Skip("allocations are not those of the product")
	}
	b := startPathBroker(t, nil)
	for range 40 {
		b.send("T", 0, "TAGS=TagA", "x")
	}
	b.stored("T", 0, 0, 40)
	h := pullHeader("T", 0, 0)
	h.Subscription, h.SysFlag, h.CommitOffset = "*", pullSubscription|pullCommitOffset, 1
	c := capture[header.PullMessageRequest](t, 200, protocol.PullMessage, h, nil)
	i := 0
	n := testing.AllocsPerRun(150, func() {
		a, err := b.pull(c.calls[i], c.reqs[i])
		if err != nil || a.Code != 0 {
			t.Fatal(a, err)
		}
		c.calls[i].Reply(a)
		i++
	})
	if n > 6 {
		t.Errorf("%.1f allocations a pull of 32 messages, want at most 6", n)
	}
}

func benchmarkSend(b *testing.B, run, size int) {
	p := startPathBrokerOn(b, nil, func(c *Config) { c.StorePathRootDir, c.MappedFileSizeCommitLog = b.TempDir(), 1<<30 })
	p.send("T", 0, "", "x")
	const chunk = 4096
	b.ReportAllocs()
	b.StopTimer()
	for left := b.N; left > 0; left -= chunk {
		n := min(left, chunk)
		c := capture[header.SendMessageRequest](b, n, protocol.SendMessageV2, sendHeader("T", 0, benchProperties), make([]byte, size))
		b.StartTimer()
		for i := 0; i < n; i += run {
			end := min(n, i+run)
			p.Broker.send(c.calls[i:end], c.reqs[i:end])
		}
		b.StopTimer()
	}
}

func BenchmarkSend1(b *testing.B)     { benchmarkSend(b, 1, 128) }
func BenchmarkSend32(b *testing.B)    { benchmarkSend(b, 32, 128) }
func BenchmarkSend32x1K(b *testing.B) { benchmarkSend(b, 32, 1024) }

func BenchmarkPull32(b *testing.B) {
	p := startPathBroker(b, nil)
	for range 40 {
		p.send("T", 0, benchProperties, string(make([]byte, 128)))
	}
	p.stored("T", 0, 0, 40)
	const chunk = 4096
	b.ReportAllocs()
	b.StopTimer()
	for left := b.N; left > 0; left -= chunk {
		n := min(left, chunk)
		c := capture[header.PullMessageRequest](b, n, protocol.PullMessage, pullHeader("T", 0, 0), nil)
		b.StartTimer()
		for i := range n {
			a, _ := p.pull(c.calls[i], c.reqs[i])
			c.calls[i].Reply(a)
		}
		b.StopTimer()
	}
}
