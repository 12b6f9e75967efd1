//go:build conformance

package differential

import (
	"fmt"
	"sync"
	"time"

	"rocketd/conformance/wire"
)

// callbacks are what the recorded clients answered to the server's requests, by code, in order. The last answer of a
// code is given as often as it is asked for.
type callbacks struct {
	mu struct {
		sync.Mutex
		answers map[int][]*wire.Frame
	}
}

func callbacksOf(entries []*entry) (*callbacks, error) {
	c := &callbacks{}
	c.mu.answers = map[int][]*wire.Frame{}
	for _, e := range entries {
		if e.fromClient() && e.isResponse() && e.ReqCode != nil {
			f, err := e.frame()
			if err != nil {
				return nil, err
			}
			c.mu.answers[*e.ReqCode] = append(c.mu.answers[*e.ReqCode], f)
		}
	}
	return c, nil
}

// next is the answer to a request of that code; nil when no client was ever asked.
func (c *callbacks) next(code int) *wire.Frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.mu.answers[code]
	if len(all) == 0 {
		return nil
	}
	if len(all) > 1 {
		c.mu.answers[code] = all[1:]
	}
	back := *all[0]
	return &back
}

// checkTransactionState is the code by which a broker asks a producer for the state of a transaction.
const checkTransactionState = 39

// learnCheck waits for the check of the transaction that a recorded one names, and keeps where its half message
// is in this server: the producer's answer names it.
func (r *replay) learnCheck(key connKey, recorded *wire.Frame) {
	c := r.conns[key]
	if c == nil {
		return
	}
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(beyond); time.Now().Before(end); <-every.C {
		for _, live := range c.Requests() {
			if live.Code != checkTransactionState || live.Ext["transactionId"] != recorded.Ext["transactionId"] {
				continue
			}
			r.offsets[recorded.Ext["commitLogOffset"]] = live.Ext["commitLogOffset"]
			r.halfOffsets[recorded.Ext["tranStateTableOffset"]] = live.Ext["tranStateTableOffset"]
			return
		}
	}
}

// notice describes a request of the server. Of what it passes on or asks, the names of the fields; of the news that a
// group has changed, also the group.
func (r *replay) notice(f *wire.Frame) string {
	const notifyConsumerIdsChanged = 40
	if f.Code == notifyConsumerIdsChanged {
		return r.local(fmt.Sprintf("%d oneway=%v %q", f.Code, f.IsOneway(), f.Ext))
	}
	return fmt.Sprintf("%d oneway=%v %q", f.Code, f.IsOneway(), f.ExtNames())
}
