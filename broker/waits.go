package broker

import (
	"sync/atomic"

	"rocketd/protocol"
	"rocketd/remoting"
)

// waits collects what an answer has to wait for: files that must hold a change before a client hears of it.
type waits []func(done func(error))

// add adds something that calls done once it has happened, or with the error that keeps it from happening.
func (w *waits) add(saved func(done func(error))) { *w = append(*w, saved) }

// unheard has the files written although nobody waits: what was made stays, and its request is answered with an error.
func (w waits) unheard() {
	for _, saved := range w {
		saved(nil)
	}
}

// answer returns the answer when there is nothing to wait for; else nil, and the call is answered when
// everything has happened: by the answer, or by SYSTEM_ERROR when something failed.
func (w waits) answer(c *remoting.Call, answer *protocol.Command) (*protocol.Command, error) {
	if len(w) == 0 {
		return answer, nil
	}
	left := new(atomic.Int32)
	left.Store(int32(len(w)))
	for _, saved := range w {
		saved(func(err error) {
			if err != nil {
				c.ReplyError(unsaved(err))
			}
			if left.Add(-1) == 0 {
				c.Reply(answer) // does nothing after an error
			}
		})
	}
	return nil, nil
}
