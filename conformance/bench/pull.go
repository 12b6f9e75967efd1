package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"rocketd/conformance/wire"
)

// Answers of a pull that move on or wait.
const (
	pullFound    = 0
	pullNotFound = 19
	pullRetry    = 20
)

// puller pulls one queue over a connection of its own.
type puller struct {
	conn    net.Conn
	t       *template
	answers *responses
	offset  int64
}

func newPuller(addr, topic string, queueId int, longPoll bool) (*puller, error) {
	f := pullRequest(topic, queueId)
	if longPoll {
		f.Set("sysFlag", "6")
	}
	t, err := newTemplate(f)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	return &puller{conn: conn, t: t, answers: newResponses(conn)}, nil
}

// next makes one pull and moves the offset on.
func (p *puller) next() (response, error) {
	p.t.setOffset(p.offset)
	if err := p.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return response{}, err
	}
	if _, err := p.conn.Write(p.t.bytes); err != nil {
		return response{}, err
	}
	r, err := p.answers.read()
	if err != nil {
		return r, err
	}
	switch r.code {
	case pullFound, pullNotFound, pullRetry:
	default:
		return r, fmt.Errorf("pull answered with %.300q", r.header)
	}
	p.offset, err = r.nextBeginOffset()
	return r, err
}

// pull reads a topic from its beginning, all queues at once, as one catching up does.
func (in *instance) pull(ctx context.Context, topic string, queues int, duration time.Duration) (outcome, error) {
	if err := in.awaitDispatch(topic, queues); err != nil {
		return outcome{}, err
	}
	pullers := make([]*puller, queues)
	for q := range pullers {
		p, err := newPuller(in.addr(), topic, q, false)
		if err != nil {
			return outcome{}, err
		}
		defer p.conn.Close()
		pullers[q] = p
	}
	return in.watch(func() (outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, duration)
		defer cancel()
		errs := make([]error, queues)
		var wg sync.WaitGroup
		for q, p := range pullers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for ctx.Err() == nil {
					if r, err := p.next(); err != nil || r.code == pullNotFound {
						errs[q] = err
						return
					}
				}
			}()
		}
		wg.Wait()
		var o outcome
		for _, p := range pullers {
			o.messages += p.offset
		}
		return o, errors.Join(errs...)
	})
}

// awaitDispatch waits until the queues stand still: all that was sent can be pulled.
func (in *instance) awaitDispatch(topic string, queues int) error {
	c, err := wire.Dial(in.addr(), nil)
	if err != nil {
		return err
	}
	defer c.Close()
	last := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		now := ""
		for q := range queues {
			f, err := c.Call(wire.Request(30, "topic", topic, "queueId", fmt.Sprint(q)), patience)
			if err != nil {
				return err
			}
			now += f.Ext["offset"] + " "
		}
		if now == last {
			return nil
		}
		last = now
	}
	return errors.New("the queues go on growing")
}

// bodies calls a function with each message's body of a pull's answer. Only the layout for IPv4 hosts is known here.
func bodies(records []byte, each func(body []byte)) error {
	const bodyLength = 84 // where the body's length stands
	for len(records) > 0 {
		if len(records) < bodyLength+4 {
			return errors.New("a record is cut short")
		}
		size := int(binary.BigEndian.Uint32(records))
		n := int(binary.BigEndian.Uint32(records[bodyLength:]))
		if size > len(records) || bodyLength+4+n > size {
			return fmt.Errorf("a record of %d bytes with a body of %d, %d are left", size, n, len(records))
		}
		each(records[bodyLength+4 : bodyLength+4+n])
		records = records[size:]
	}
	return nil
}
