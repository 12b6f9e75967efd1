package remoting

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A peer that sends faster than it is served keeps a poller busy, which reads for all others too, and fills our memory:
// netpoll has no way not to read. But what the kernel holds of a connection can be bounded. A peer is then stopped by its own
// TCP as soon as that is full.
const (
	// receiveNear and receiveFar are the receive buffers, in bytes, of peers within nearMicros (µs, there and back), and of others,
	// after they were braked. Linux does not let them grow by themselves any more, cuts them to net.core.rmem_max and doubles them;
	// the near one lets through 256 MiB a second and more.
	receiveNear = 256 << 10
	receiveFar  = 4 << 20
	nearMicros  = 1000
	// brakeAt is how much may be unread (bytes) until the peer is braked, and releaseAt how little when it is let go again.
	brakeAt   = 8 << 20
	releaseAt = 1 << 20
	// A braked connection pauses after each run for brakePause times as long as that took, but at most mostPause: others
	// need the processors too.
	brakePause = 3
	mostPause  = 100 * time.Millisecond
)

// braked is the number of connections that are braked, of all servers and clients: their pollers are the same.
var braked atomic.Int32

// brake is what the frame loop does between two runs of a peer that sends without a pause. Only the goroutine of
// OnRequest calls it: while that runs, netpoll keeps the socket.
func (c *Conn) brake() {
	unread := c.arriving.Len()
	if !c.brakes && unread > brakeAt {
		c.brakes = true
		braked.Add(1)
		c.owner.stats.braked.Add(1)
		c.sock.narrow(true)
	} else if c.brakes && unread < releaseAt {
		c.release()
	}
	runtime.Gosched() // it does not keep the processor from others, braked or not
	if c.brakes && !c.runBegan.IsZero() {
		time.Sleep(min(brakePause*time.Since(c.runBegan), mostPause))
	}
	c.runBegan = time.Now()
}

// release lets a connection go that is braked: what it sent is done, or the rest of a frame is needed, or it ends.
func (c *Conn) release() {
	if c.brakes {
		c.brakes = false
		braked.Add(-1)
		c.sock.narrow(false)
	}
}

// An address whose connections have left more than wasteLimit bytes of half frames of late, each more than wasteLeast, begins its
// next ones braked, until a frame of theirs is whole: who comes again and again with large halves keeps a poller as busy as who sends
// without a pause. What is of late fades by half with each sweep.
const (
	wasteLimit = 16 << 20
	wasteLeast = 1 << 20
)

// forgetWaste has what addresses have wasted fade.
func (e *endpoint) forgetWaste() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for addr, n := range e.mu.wasted {
		if n /= 2; n < wasteLeast {
			delete(e.mu.wasted, addr)
			continue
		}
		e.mu.wasted[addr] = n
	}
}
