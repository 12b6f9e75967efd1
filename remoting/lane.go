package remoting

import (
	"runtime"
	"sync"
	"time"

	"rocketd/protocol"
)

// Inline is the lane of handlers that never wait: they run on the connection's goroutine, in the order
// of arrival.
var Inline = &Lane{name: "inline"}

// laneIdle is how long a worker without work stays.
const laneIdle = 10 * time.Second

// A worker rests as long as it has worked, at most lanePause, when laneFlood calls wait and the next one is of the same
// connection as the last: a peer that keeps a lane full has no claim to the processors that others need.
const (
	laneFlood = 32
	lanePause = 5 * time.Millisecond
)

// Lane is a bounded pool that runs handlers which may be slow. A full queue is answered SYSTEM_BUSY
// with the official [OVERLOAD] remark.
type Lane struct {
	name     string
	workers  int
	capacity int
	idleTime time.Duration

	mu struct {
		sync.Mutex
		closed  bool
		queue   []*Call // a ring: calls that wait for a worker
		head, n int
		running int           // workers, idle ones included
		idle    []*laneWorker // the last to become idle is the first to get work
		ended   *sync.Cond    // running became less
	}
}

// laneWorker is a goroutine of a lane. While it is in the idle list it waits for a call; whoever takes
// it from the list sends it exactly one (nil = end).
type laneWorker struct{ work chan *Call }

// NewLane makes a lane of workers goroutines (started on demand, ended when idle) and a queue bound.
func NewLane(name string, workers, queue int) *Lane {
	l := &Lane{name: name, workers: max(workers, 1), capacity: max(queue, 0), idleTime: laneIdle}
	l.mu.ended = sync.NewCond(&l.mu)
	return l
}

// Name is the name it was made with.
func (l *Lane) Name() string { return l.name }

// Queued is the number of calls waiting for a worker, for the runtime information.
func (l *Lane) Queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.n
}

// Capacity is the queue bound.
func (l *Lane) Capacity() int { return l.capacity }

// Close refuses further calls, answers those that wait SYSTEM_BUSY, and waits for those that run.
func (l *Lane) Close() {
	l.mu.Lock()
	l.mu.closed = true
	var waiting []*Call
	for c := l.popLocked(); c != nil; c = l.popLocked() {
		waiting = append(waiting, c)
	}
	for _, w := range l.mu.idle {
		w.work <- nil
	}
	l.mu.idle = nil
	l.mu.Unlock()

	for _, c := range waiting {
		c.Reply(busyAnswer())
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	for l.mu.running > 0 {
		l.mu.ended.Wait()
	}
}

// submit has c served by a worker. It is false when there is no room.
func (l *Lane) submit(c *Call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch n := len(l.mu.idle); {
	case l.mu.closed:
		return false
	case n > 0:
		w := l.mu.idle[n-1]
		l.mu.idle = l.mu.idle[:n-1]
		w.work <- c // never waits: the channel has room for the one call
	case l.mu.running < l.workers:
		l.mu.running++
		go l.serve(c)
	case l.mu.n < l.capacity:
		l.pushLocked(c)
	default:
		return false
	}
	return true
}

// serve is a worker's life.
func (l *Lane) serve(c *Call) {
	w := &laneWorker{work: make(chan *Call, 1)}
	timer := time.NewTimer(l.idleTime)
	defer timer.Stop()
	for c != nil {
		began, served := time.Now(), c.conn
		c.route.serve(c)
		runtime.Gosched()
		l.mu.Lock()
		if c = l.popLocked(); c != nil {
			flood := l.mu.n >= laneFlood && c.conn == served
			l.mu.Unlock()
			if flood {
				time.Sleep(min(time.Since(began), lanePause))
			}
			continue
		}
		if l.mu.closed {
			l.mu.Unlock()
			break
		}
		l.mu.idle = append(l.mu.idle, w)
		l.mu.Unlock()

		timer.Reset(l.idleTime)
		select {
		case c = <-w.work:
		case <-timer.C:
			if !l.leave(w) {
				c = <-w.work // taken from the list just now: its call is on the way
			}
		}
	}
	l.mu.Lock()
	l.mu.running--
	l.mu.ended.Broadcast()
	l.mu.Unlock()
}

// leave takes w from the idle list, false when it is not there any more.
func (l *Lane) leave(w *laneWorker) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.mu.idle {
		if other == w {
			l.mu.idle = append(l.mu.idle[:i], l.mu.idle[i+1:]...)
			return true
		}
	}
	return false
}

func (l *Lane) pushLocked(c *Call) {
	if l.mu.n == len(l.mu.queue) {
		grown := make([]*Call, max(16, 2*l.mu.n))
		k := copy(grown, l.mu.queue[l.mu.head:])
		copy(grown[k:], l.mu.queue[:l.mu.head])
		l.mu.queue, l.mu.head = grown, 0
	}
	l.mu.queue[(l.mu.head+l.mu.n)%len(l.mu.queue)] = c
	l.mu.n++
}

func (l *Lane) popLocked() *Call {
	if l.mu.n == 0 {
		return nil
	}
	c := l.mu.queue[l.mu.head]
	l.mu.queue[l.mu.head] = nil
	l.mu.head = (l.mu.head + 1) % len(l.mu.queue)
	l.mu.n--
	return c
}

func busyAnswer() *Command { return protocol.NewResponse(protocol.SystemBusy, overloadRemark, nil) }
