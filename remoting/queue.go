package remoting

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"

	"rocketd/protocol"
)

// writeQueue holds the frames of one connection that the socket has not taken yet. Anyone may append;
// one at a time flushes: whoever finds flushing false sets it and becomes the flusher.
type writeQueue struct {
	bytes atomic.Int64 // queued or being written; changed under the lock

	mu struct {
		sync.Mutex
		chunks   []*chunk
		flushing bool
		closed   bool
		run      uint32 // the connection's run in progress, which flushes at its end; 0 = none
		scratch  Command
		drained  chan struct{} // closed when everything is written, or will not be; nil = nobody waits
	}
	spare []*chunk // the flusher's: the slice it took the chunks with

	// writing is held while bytes go to the socket. The end of the connection takes it and sets gone,
	// because netpoll then reuses the socket's buffers and its number.
	writing sync.Mutex
	gone    bool
	seal    *secure // what TLS does with the bytes, nil = none
}

// Sizes of the write queue.
const (
	headRoom    = 512       // room that a header usually needs
	firstChunk  = 8 << 10   // of an empty queue
	furtherSize = 64 << 10  // of a queue that grows
	writeSize   = 256 << 10 // most that one wait for the peer covers
)

// appendLocked appends a frame. A header that can't be encoded, or is too long, gives an error; the peer gets an
// answer all the same, and of a request of ours nothing.
func (q *writeQueue) appendLocked(cmd *Command, most int) (err error) {
	if len(cmd.Body) > most-8 {
		err = tooLarge(cmd, 8+len(cmd.Body), most)
		if !cmd.IsResponse() {
			return err
		}
		cmd = instead(cmd, err)
	}
	large := err
	need := headRoom + len(cmd.Body)
	var tail *chunk
	if n := len(q.mu.chunks); n > 0 && cap(q.mu.chunks[n-1].b)-len(q.mu.chunks[n-1].b) >= need {
		tail = q.mu.chunks[n-1]
	} else {
		size := firstChunk
		if n > 0 {
			size = furtherSize
		}
		tail = newChunk(max(need, size))
		q.mu.chunks = append(q.mu.chunks, tail)
	}
	before := len(tail.b)
	tail.b, err = appendFrame(tail.b, cmd, most)
	q.bytes.Add(int64(len(tail.b) - before))
	return cmp.Or(err, large)
}

// largeError says that a command does not fit a frame.
type largeError struct{ text string }

// Error implements error.
func (e *largeError) Error() string { return e.text }

func tooLarge(cmd *Command, size, most int) error {
	what := "request"
	if cmd.IsResponse() {
		what = "answer"
	}
	return &largeError{fmt.Sprintf("the %s has %d bytes, and a frame at most %d", what, size, most)}
}

// instead is the answer in the place of one that can't be sent.
func instead(cmd *Command, why error) *Command {
	broken := protocol.NewResponse(protocol.SystemError, why.Error(), nil)
	broken.Flag, broken.Opaque, broken.Serialize = cmd.Flag, cmd.Opaque, cmd.Serialize
	broken.Language, broken.Version = cmd.Language, cmd.Version
	return broken
}

// appendFrame appends the frame of a command, of most bytes at most. The official server sends a larger one, and the
// client then closes the connection, with all that waits on it.
func appendFrame(dst []byte, cmd *Command, most int) (out []byte, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("encode %T: %v", cmd.Header, reason)
		}
		if err == nil {
			return
		}
		if out = dst; cmd.IsResponse() {
			out = protocol.AppendFrame(dst, instead(cmd, err))
		}
	}()
	out = protocol.AppendFrame(dst, cmd)
	if header := len(out) - len(dst) - 8 - len(cmd.Body); header > protocol.MaxHeader {
		return nil, fmt.Errorf("encode %T: a header of %d bytes, the most is %d", cmd.Header, header, protocol.MaxHeader)
	}
	if size := len(out) - len(dst); size > most {
		return nil, tooLarge(cmd, size, most)
	}
	return out, nil
}

// answer queues the answer of a call.
func (c *Conn) answer(call *Call, cmd *Command) {
	req := &call.command
	c.enqueue(cmd, call.run, req.Opaque, cmd.Flag|protocol.FlagResponse, req.Serialize)
	if recycle := cmd.Recycle; recycle != nil {
		body := cmd.Body
		cmd.Body, cmd.Recycle = nil, nil
		recycle(body)
	}
}

// enqueue appends a frame and sees to it that it is flushed: by the run in progress when the frame
// belongs to it, else by a task of the connection's own. It never waits for the peer.
func (c *Conn) enqueue(cmd *Command, run uint32, opaque, flag int32, form protocol.SerializeType) error {
	q := &c.out
	q.mu.Lock()
	if q.mu.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	s := &q.mu.scratch // the handler may give one command to many
	*s = *cmd
	s.Opaque, s.Flag, s.Serialize = opaque, flag, form
	s.Language, s.Version = protocol.Java, protocol.ServerVersion
	err := q.appendLocked(s, c.owner.limits.frame)
	*s = Command{}
	queued := err == nil || flag&protocol.FlagResponse != 0
	task := queued && !q.mu.flushing && (run == 0 || run != q.mu.run)
	if task {
		q.mu.flushing = true
	}
	q.mu.Unlock()

	if err != nil {
		if _, large := err.(*largeError); large && queued {
			c.owner.stats.large.Add(1)
		}
		c.owner.log.Error("command not encodable", "code", cmd.Code, "remote", c.remote, "error", err)
		if queued {
			err = nil // the peer has its answer
		}
	}
	if limit := c.owner.limits.queuedClose; limit > 0 && q.bytes.Load() > limit {
		c.end(ClosedOverload)
	}
	if task {
		go c.flush(true)
	}
	return err
}

// beginRun opens a run: calls made in it and answered at once are flushed together at its end.
func (c *Conn) beginRun() {
	c.run++
	if c.run == 0 {
		c.run++ // 0 means none
	}
	c.runCalls, c.runBytes = 0, 0
	c.out.mu.Lock()
	c.out.mu.run = c.run
	c.out.mu.Unlock()
}

// endRun serves what was collected and flushes, unless a task of the connection is at it. A peer that
// does not read stops the task, never the run.
func (c *Conn) endRun() {
	c.endBatch()
	q := &c.out
	q.mu.Lock()
	q.mu.run = 0
	mine := !q.mu.flushing && len(q.mu.chunks) > 0 && !q.mu.closed
	if mine {
		q.mu.flushing = true
	}
	q.mu.Unlock()
	if mine {
		c.flush(false)
	}
}

// flush writes what is queued; the caller has set flushing. When the socket takes no more and the caller
// may not wait, a task of the connection's own goes on.
func (c *Conn) flush(mayWait bool) {
	for {
		batch := c.takeQueued()
		if batch == nil {
			return
		}
		if !c.write(batch, 0, mayWait) {
			return
		}
	}
}

// takeQueued returns the queued chunks; with none it gives up the flush.
func (c *Conn) takeQueued() []*chunk {
	q := &c.out
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.chunks) == 0 || q.mu.closed {
		q.mu.flushing = false
		q.notifyLocked()
		return nil
	}
	batch := q.mu.chunks
	q.mu.chunks, q.spare = q.spare[:0], nil
	return batch
}

func (q *writeQueue) notifyLocked() {
	if q.mu.drained != nil {
		close(q.mu.drained)
		q.mu.drained = nil
	}
}

// write writes a batch, of whose first chunk done bytes are written already. It is false when the
// caller's flush is over: given to a task, or because the connection is.
func (c *Conn) write(batch []*chunk, done int, mayWait bool) bool {
	q := &c.out
	q.writing.Lock()
	defer q.writing.Unlock()
	var out sink = c.sock
	if q.seal != nil {
		out = q.seal
	}
	for i, part := range batch {
		for done < len(part.b) && !q.gone {
			n, err := out.send(part.b[done:])
			done += n
			c.wrote(n)
			if err == nil && n == 0 {
				if !mayWait {
					go c.resume(batch[i:], done)
					return false
				}
				n = min(len(part.b)-done, writeSize)
				if err = out.sendWait(part.b[done : done+n]); err == nil {
					done += n
					c.wrote(n)
				}
			}
			if err != nil {
				// The chunks are left to the collector: the poller may still read from them.
				c.end(ClosedByPeer)
				return false
			}
		}
		if q.gone {
			return false
		}
		part.free()
		batch[i], done = nil, 0
	}
	q.spare = batch[:0]
	return true
}

// resume goes on with a flush that would have had to wait.
func (c *Conn) resume(batch []*chunk, done int) {
	if c.write(batch, done, true) {
		c.flush(true)
	}
}

func (c *Conn) wrote(n int) {
	c.out.bytes.Add(-int64(n))
	c.written.Add(int64(n))
}

// drained returns a channel that is closed when all that is queued now has been written, or never
// will be.
func (c *Conn) drained() <-chan struct{} {
	q := &c.out
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.drained == nil {
		q.mu.drained = make(chan struct{})
	}
	ch := q.mu.drained
	if q.mu.closed || (!q.mu.flushing && len(q.mu.chunks) == 0) {
		q.notifyLocked()
	}
	return ch
}

// closeQueue refuses further frames, drops what is queued and waits for a write in progress, which the
// end of the connection has woken.
func (c *Conn) closeQueue() {
	q := &c.out
	q.mu.Lock()
	q.mu.closed = true
	q.mu.chunks = nil
	q.notifyLocked()
	q.mu.Unlock()

	q.writing.Lock()
	q.gone = true
	q.writing.Unlock()
}
