package remoting

import (
	"errors"
	"sync"
	"time"
)

// Errors of requests that we send.
var (
	// ErrTimeout says that no answer came in time.
	ErrTimeout = errors.New("no answer in time")
	// ErrClosed says that the connection ended before the answer came.
	ErrClosed = errors.New("connection closed")
	// ErrQueueFull says that the peer does not read what has been sent to it already.
	ErrQueueFull = errors.New("the peer does not read: write queue full")
)

// pendingTable holds the requests that we have sent on one connection and that wait for an answer. Our
// opaques are a number space of their own: the peer's requests on the same connection have another.
type pendingTable struct {
	sync.Mutex
	last    int32
	waiting map[int32]pendingRequest
	ended   bool
}

type pendingRequest struct {
	deadline time.Time
	done     func(*Command, error)
}

// add returns the opaque of a new request; done will be called once. It is false after end.
func (t *pendingTable) add(deadline time.Time, done func(*Command, error)) (int32, bool) {
	t.Lock()
	defer t.Unlock()
	if t.ended {
		return 0, false
	}
	if t.waiting == nil {
		t.waiting = map[int32]pendingRequest{}
	}
	for {
		t.last++
		if _, taken := t.waiting[t.last]; !taken {
			break
		}
	}
	t.waiting[t.last] = pendingRequest{deadline, done}
	return t.last, true
}

// next returns an opaque for a request that waits for nothing.
func (t *pendingTable) next() int32 {
	t.Lock()
	defer t.Unlock()
	t.last++
	return t.last
}

// take removes a request and returns its done, nil when it is not there.
func (t *pendingTable) take(opaque int32) func(*Command, error) {
	t.Lock()
	defer t.Unlock()
	p := t.waiting[opaque]
	delete(t.waiting, opaque)
	return p.done
}

// expire gives ErrTimeout to the requests whose time is over.
func (t *pendingTable) expire(now time.Time) {
	t.Lock()
	var late []func(*Command, error)
	for opaque, p := range t.waiting {
		if now.After(p.deadline) {
			late = append(late, p.done)
			delete(t.waiting, opaque)
		}
	}
	t.Unlock()
	for _, done := range late {
		done(nil, ErrTimeout)
	}
}

// end gives ErrClosed to all requests, and add refuses from now on.
func (t *pendingTable) end() {
	t.Lock()
	waiting := t.waiting
	t.waiting, t.ended = nil, true
	t.Unlock()
	for _, p := range waiting {
		p.done(nil, ErrClosed)
	}
}
