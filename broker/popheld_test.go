package broker

import (
	"fmt"
	"testing"

	"rocketd/protocol"
	"rocketd/remoting/remotingtest"
)

// TestPopHeldWhileMessagesArrive: pops that are held at the very moment in which messages arrive are answered, each with a
// message of its own. (The race detector has seen one go on while it was still being held.)
func TestPopHeldWhileMessagesArrive(t *testing.T) {
	p := startPathBroker(t, nil)
	p.send("BenchmarkTest", 0, "", "first")
	p.stored("BenchmarkTest", 0, 0, 1)
	if n := len(p.pops(popHeader("BenchmarkTest", 1, 1<<40))); n != 1 {
		t.Fatalf("%d messages at first", n)
	}
	const n = 100
	sender := p.dial()
	sent := make(chan error, 1)
	go func() {
		defer close(sent)
		for i := range n {
			req := protocol.NewRequest(protocol.SendMessage, sendHeader("BenchmarkTest", int32(i%8), ""), fmt.Append(nil, i))
			req.Opaque = int32(i + 1)
			if a := sender.Ask(req); a.Code != 0 {
				sent <- fmt.Errorf("send: code %d, %q", a.Code, a.Remark)
				return
			}
		}
	}()
	seen := map[string]bool{}
	for len(seen) < n {
		h := popHeader("BenchmarkTest", 1, 1<<40)
		h.PollTime = remotingtest.Patience.Milliseconds()
		for _, m := range p.pops(h) {
			if seen[string(m.Body)] {
				t.Fatalf("%s came twice", m.Body)
			}
			seen[string(m.Body)] = true
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}
