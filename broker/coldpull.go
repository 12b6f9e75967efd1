package broker

import (
	"hash/maphash"
	"runtime"
	"sync/atomic"

	"rocketd/protocol/header"
	"rocketd/remoting"
)

// coldPulls takes pulls of consumers that are far behind off their connection's goroutine: they may wait for the
// disk, and what else the client sends by that connection may not wait for them. That a pull will be cold is known
// from the one before, where that left off; and what was stored before the broker was started is taken for cold. At most a
// fixed number run at once; one more runs on its connection's goroutine, which slows down just that client.
type coldPulls struct {
	behind int64 // bytes behind the log's end from which a pull counts as cold
	seed   maphash.Seed
	slots  chan struct{}
	// reads lets fewer of them read at once than there are processors: a goroutine that waits for the disk keeps its
	// processor until the runtime takes that away, and with all of them kept nobody serves the others.
	reads chan struct{}
	// next holds hashes of where cold pulls will go on; a lost one costs one read on the connection's goroutine.
	next  [1024]atomic.Uint64
	noted atomic.Bool  // once there was one: before, nothing needs to be looked up
	taken atomic.Int64 // pulls that ran here
}

// Bounds of cold pulls.
const (
	coldBehind  = 256 << 20 // within the store's hot window on machines of 4 GiB and more
	coldWorkers = 16
)

func newColdPulls() *coldPulls {
	return &coldPulls{behind: coldBehind, seed: maphash.MakeSeed(), slots: make(chan struct{}, coldWorkers),
		reads: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))}
}

// coldPlace is a place in a queue at which one client reads.
type coldPlace struct {
	conn    *remoting.Conn
	topic   string
	queueId int32
	offset  int64
}

// note remembers that the pull at a place will be cold.
func (p *coldPulls) note(at coldPlace) {
	h := maphash.Comparable(p.seed, at) | 1 // 0 is an empty slot
	p.next[h>>1%uint64(len(p.next))].Store(h)
	p.noted.Store(true)
}

// expects tells whether the pull at a place was noted, and forgets it.
func (p *coldPulls) expects(at coldPlace) bool {
	if !p.noted.Load() {
		return false
	}
	h := maphash.Comparable(p.seed, at) | 1
	slot := &p.next[h>>1%uint64(len(p.next))]
	return slot.Load() == h && slot.CompareAndSwap(h, 0)
}

// run runs a cold pull on a goroutine of its own; false: there is no room.
func (p *coldPulls) run(f func()) bool {
	select {
	case p.slots <- struct{}{}:
	default:
		return false
	}
	p.taken.Add(1)
	go func() {
		defer func() { <-p.slots }()
		p.reads <- struct{}{}
		defer func() { <-p.reads }()
		f()
	}()
	return true
}

// close waits for those that run and lets no more run here. Called once.
func (p *coldPulls) close() {
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
}

// takeCold has a pull that will be cold run elsewhere; false: it runs here.
func (b *Broker) takeCold(c *remoting.Call, req *header.PullMessageRequest) bool {
	p := b.path.cold
	if !p.expects(coldPlace{c.Conn(), req.Topic, req.QueueId, req.QueueOffset}) && !b.store.Old(req.Topic, req.QueueId, req.QueueOffset) {
		return false
	}
	return p.run(func() {
		defer b.recovered(c, req.Topic, req.ConsumerGroup)
		answer, err := b.firstPull(c, req)
		runtime.Gosched() // who has waited meanwhile goes before the writing of so many bytes
		switch {
		case err != nil:
			c.ReplyError(err)
		case answer != nil:
			c.Reply(answer)
		}
	})
}
