package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"rocketd/conformance/wire"
)

// sendLoad is a load of sends: each connection keeps so many in flight, and sends as many new ones as answers have come.
type sendLoad struct {
	topic       string
	queues      int
	connections int
	inFlight    int
	body        int
	batch       int // messages in a request; 0 = no batch
	duration    time.Duration
	most        int64         // messages
	timer       time.Duration // how long each waits; 0: it does not
	due         time.Time     // when all are due; zero: they have no time of their own
	signed      bool          // all messages are one, which is signed
}

// sender is one connection of a load.
type sender struct {
	load     *sendLoad
	t        *template
	conn     net.Conn
	answers  *responses
	sentAt   []time.Time // by slot; the opaque is the slot
	seq      int
	histo    *hdrhistogram.Histogram
	messages int64
	out      []byte
}

// send runs a load of sends.
func (in *instance) send(ctx context.Context, load sendLoad) (outcome, error) {
	senders := make([]*sender, load.connections)
	for i := range senders {
		s, err := newSender(in.addr(), &load, i)
		if err != nil {
			return outcome{}, err
		}
		defer s.conn.Close()
		senders[i] = s
	}
	return in.watch(func() (outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, load.duration)
		defer cancel()
		var left atomic.Int64
		left.Store(load.most)
		errs := make([]error, len(senders))
		var wg sync.WaitGroup
		for i, s := range senders {
			wg.Add(1)
			go func() {
				defer wg.Done()
				errs[i] = s.run(ctx, &left)
			}()
		}
		wg.Wait()
		o := outcome{latencies: newHistogram()}
		for _, s := range senders {
			o.messages += s.messages
			o.latencies.Merge(s.histo)
		}
		return o, errors.Join(errs...)
	})
}

func newSender(addr string, load *sendLoad, n int) (*sender, error) {
	f := timed(sendRequest(load.topic, n%load.queues, load.body), load.timer)
	if !load.due.IsZero() {
		f.Set("i", f.Ext["i"]+"\x02"+wire.Properties("TIMER_DELIVER_MS", strconv.FormatInt(load.due.UnixMilli(), 10)))
	}
	if load.batch > 0 {
		f = batchRequest(load.topic, n%load.queues, load.batch, load.body)
	}
	if load.signed {
		f.Sign(aclAccessKey, aclSecretKey)
	}
	t, err := newTemplate(f)
	if err != nil {
		return nil, err
	}
	if load.signed {
		t.keys = nil // they are signed
	}
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	return &sender{load: load, t: t, conn: conn, answers: newResponses(conn), sentAt: make([]time.Time, load.inFlight),
		histo: newHistogram(), seq: n << 40}, nil
}

// run sends until the time or the messages are used up, and waits for the last answers.
func (s *sender) run(ctx context.Context, left *atomic.Int64) error {
	perRequest := int64(max(1, s.load.batch))
	if err := s.conn.SetDeadline(time.Now().Add(s.load.duration + patience)); err != nil {
		return err
	}
	free := make([]int, s.load.inFlight)
	for i := range free {
		free[i] = i
	}
	waiting := 0
	for {
		for _, slot := range free {
			if ctx.Err() != nil || left.Add(-perRequest) < 0 {
				break
			}
			s.add(slot)
			waiting++
		}
		free = free[:0]
		if len(s.out) > 0 {
			if _, err := s.conn.Write(s.out); err != nil {
				return err
			}
			s.out = s.out[:0]
		}
		if waiting == 0 {
			return nil
		}
		for first := true; first || (waiting > 0 && s.answers.ready()); first = false {
			r, err := s.answers.read()
			if err != nil {
				return err
			}
			if r.code != 0 || r.opaque < 0 || r.opaque >= len(s.sentAt) {
				return fmt.Errorf("send answered with %.300q", r.header)
			}
			if err := s.histo.RecordValue(int64(time.Since(s.sentAt[r.opaque]))); err != nil {
				return err
			}
			s.messages += perRequest
			waiting--
			free = append(free, r.opaque)
		}
	}
}

// add puts the next request behind those that will be written together.
func (s *sender) add(slot int) {
	s.t.setOpaque(slot)
	s.t.setKeys(s.seq)
	s.seq += max(1, s.load.batch)
	s.out = append(s.out, s.t.bytes...)
	s.sentAt[slot] = time.Now()
}
