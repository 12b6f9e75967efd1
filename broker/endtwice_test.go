package broker

import (
	"sync/atomic"
	"syscall"
	"testing"

	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// TestEndedTwice: the producer ends its transaction while it is asked about it, and answers the check too. Whichever end comes first
// counts, on one connection or on two; the official broker stores the message once for each.
func TestEndedTwice(t *testing.T) {
	t.Parallel()
	rollback := func(h *header.EndTransactionRequest) *header.EndTransactionRequest {
		return end(h, func(h *header.EndTransactionRequest) { h.CommitOrRollback = message.TransactionRollback })
	}
	same := func(h *header.EndTransactionRequest) *header.EndTransactionRequest { return h }
	for _, c := range []struct {
		name          string
		checkFirst    bool
		first, second func(*header.EndTransactionRequest) *header.EndTransactionRequest
		want          int64 // messages
	}{
		{"end, answer", false, same, same, 1},
		{"answer, end", true, same, same, 1},
		{"end, other answer", false, same, rollback, 1},
		{"rollback, answer", false, rollback, same, 0},
		{"answer, rollback", true, same, rollback, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := startPathBroker(t, soon)
			producer := b.dial() // so that checks and answers don't mix
			b.producer(producer, "p")
			first := b.half("TopicA", 0, tran, "x")
			second, _ := checked(t, producer)
			if c.checkFirst {
				first, second = second, first
			}
			one, two := b.request(protocol.EndTransaction, c.first(first), nil), b.request(protocol.EndTransaction, c.second(second), nil)
			b.peer.Send(one, two)
			for _, f := range []*protocol.Command{one, two} {
				if a := b.peer.Receive(); a.Opaque != f.Opaque || a.Code != 0 {
					t.Errorf("got %+v", a)
				}
			}
			b.send("TopicB", 0, "", "last") // dispatched after them
			b.stored("TopicB", 0, 0, 1)
			if n := b.store.MaxOffset("TopicA", 0); n != c.want {
				t.Errorf("%d messages, want %d", n, c.want)
			}
			if n := b.store.MaxOffset(topics.TransOpHalf, 0); n != 1 {
				t.Errorf("%d ops", n)
			}
		})
	}
}

// TestEndedTwiceOnFullDisk: an end that can't be stored leaves the transaction to the one behind it, which came with it or later, and no
// success is answered for what isn't stored.
func TestEndedTwiceOnFullDisk(t *testing.T) {
	b, f := faultBroker(t, nil)
	h := b.half("TopicA", 0, tran, "x")
	var full atomic.Bool
	f.SetInject(onLog(vfs.OpWrite, func() error {
		if full.Swap(false) {
			return syscall.EIO
		}
		return nil
	}))
	full.Store(true)
	one, two := b.request(protocol.EndTransaction, h, nil), b.request(protocol.EndTransaction, h, nil)
	b.peer.Send(one, two)
	codes := map[int32]int32{}
	for range 2 {
		a := b.peer.Receive()
		codes[a.Opaque] = a.Code
	}
	if codes[one.Opaque] != int32(protocol.SystemError) || codes[two.Opaque] != 0 {
		t.Errorf("answered %v", codes)
	}
	check(t, "a third", b.ask(protocol.EndTransaction, h, nil), protocol.Success, "")
	if m := b.stored("TopicA", 0, 0, 1)[0]; string(m.Body) != "x" {
		t.Errorf("committed: %q", m.Body)
	}
	b.send("TopicB", 0, "", "last")
	b.stored("TopicB", 0, 0, 1)
	if n := b.store.MaxOffset("TopicA", 0); n != 1 {
		t.Errorf("%d messages", n)
	}
}
