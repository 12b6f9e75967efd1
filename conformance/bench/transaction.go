package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/conformance/wire"
)

// transactions is a load of transactional sends: each connection keeps so many half messages in flight, and commits each,
// oneway as the clients do, when it has been answered.
type transactions struct {
	conn     net.Conn
	answers  *responses
	half     *template
	end      *template
	place    [2]int // of the commit-log offset and the queue offset in end, of ten digits each
	seq      int
	messages int64
	out      []byte
	open     bool // nothing is committed
}

func newTransactions(addr, topic string, queueId, body, n int) (*transactions, error) {
	f := sendRequest(topic, queueId, body).Set("f", "4").
		Set("i", wire.Properties("UNIQ_KEY", markedKey, "WAIT", "true", "TAGS", "TagA", "TRAN_MSG", "true", "PGROUP", "bench-producer"))
	t := &transactions{seq: n << 40}
	var err error
	if t.half, err = newTemplate(f); err != nil {
		return nil, err
	}
	digits := strconv.Itoa(firstOpaque)
	e := wire.End("bench-producer", digits, digits, wire.Commit, false)
	e.Flag |= wire.FlagOneway
	if t.end, err = newTemplate(e); err != nil {
		return nil, err
	}
	for i, mark := range []string{`"commitLogOffset":"`, `"tranStateTableOffset":"`} {
		at := bytes.Index(t.end.bytes, []byte(mark))
		if at < 0 {
			return nil, fmt.Errorf("no %s in %q", mark, t.end.bytes)
		}
		t.place[i] = at + len(mark)
	}
	if t.conn, err = net.DialTimeout("tcp", addr, patience); err != nil {
		return nil, err
	}
	t.answers = newResponses(t.conn)
	return t, nil
}

// commit puts the end of a transaction behind what will be written: Java reads leading zeros.
func (t *transactions) commit(r response) error {
	queueOffset, ok := numberAfter(r.header, `"queueOffset":"`)
	at, err := behind(r.header, `"msgId":"`, 32)
	if !ok || err != nil {
		return fmt.Errorf("half message answered with %.300q", r.header)
	}
	var place [8]byte
	if _, err := hex.Decode(place[:], at[16:]); err != nil {
		return err
	}
	n := 0
	for _, b := range place {
		n = n<<8 | int(b)
	}
	putDigits(t.end.bytes[t.place[0]:], n, 10)
	putDigits(t.end.bytes[t.place[1]:], int(queueOffset), 10)
	t.out = append(t.out, t.end.bytes...)
	return nil
}

// behind returns n characters behind a mark of an answer's header.
func behind(header []byte, mark string, n int) ([]byte, error) {
	at := strings.Index(string(header), mark) + len(mark) // no copy: the compiler sees that the string does not live on
	if at < len(mark) || at+n > len(header) {
		return nil, errors.New("no " + mark)
	}
	return header[at : at+n], nil
}

// run sends until the time or the messages are used up, and commits what is answered.
func (t *transactions) run(ctx context.Context, inFlight int, left *atomic.Int64, duration time.Duration) error {
	if err := t.conn.SetDeadline(time.Now().Add(duration + patience)); err != nil {
		return err
	}
	for waiting, room := 0, inFlight; ; room = inFlight - waiting {
		for ; room > 0 && ctx.Err() == nil && left.Add(-1) >= 0; room-- {
			t.half.setOpaque(waiting)
			t.half.setKeys(t.seq)
			t.seq++
			t.out = append(t.out, t.half.bytes...)
			waiting++
		}
		if len(t.out) > 0 {
			if _, err := t.conn.Write(t.out); err != nil {
				return err
			}
			t.out = t.out[:0]
		}
		if waiting == 0 {
			return nil
		}
		for first := true; first || (waiting > 0 && t.answers.ready()); first = false {
			r, err := t.answers.read()
			if err != nil {
				return err
			}
			if r.code != 0 {
				return fmt.Errorf("half message answered with %.300q", r.header)
			}
			if !t.open {
				if err := t.commit(r); err != nil {
					return err
				}
			}
			t.messages++
			waiting--
		}
	}
}

// transact runs a load of transactions, from the first half message until the last message can be pulled.
func (in *instance) transact(ctx context.Context, topic string, queues, connections, inFlight, body int, most int64, duration time.Duration) (outcome, error) {
	all := make([]*transactions, connections)
	for i := range all {
		t, err := newTransactions(in.addr(), topic, i%queues, body, i)
		if err != nil {
			return outcome{}, err
		}
		defer t.conn.Close()
		all[i] = t
	}
	return in.watch(func() (outcome, error) {
		running, cancel := context.WithTimeout(ctx, duration)
		defer cancel()
		var left atomic.Int64
		left.Store(most)
		errs := make([]error, len(all))
		var wg sync.WaitGroup
		for i, t := range all {
			wg.Go(func() { errs[i] = t.run(running, inFlight, &left, duration) })
		}
		wg.Wait()
		var o outcome
		for _, t := range all {
			o.messages += t.messages
		}
		return o, errors.Join(append(errs, in.awaitMessages(topic, queues, o.messages))...)
	})
}

// awaitMessages waits until a topic has so many messages, each of which is there.
func (in *instance) awaitMessages(topic string, queues int, want int64) error {
	c, err := wire.Dial(in.addr(), nil)
	if err != nil {
		return err
	}
	defer c.Close()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(patience); ; <-every.C {
		have := int64(0)
		for q := range queues {
			f, err := c.Call(wire.Request(30, "topic", topic, "queueId", strconv.Itoa(q)), patience)
			if err != nil {
				return err
			}
			n, err := strconv.ParseInt(f.Ext["offset"], 10, 64)
			if err != nil {
				return err
			}
			have += n
		}
		if have == want {
			return nil
		}
		if have > want || time.Now().After(end) {
			return fmt.Errorf("%d messages of %d transactions", have, want)
		}
	}
}

// openChecks has half messages checked as fast as nobody would: all that are open are stored again every two seconds.
var openChecks = map[string]string{"transactionCheckInterval": "2000", "transactionTimeOut": "1", "transactionCheckMax": "1000000"}

// openHalves is how many half messages nobody ends.
const openHalves = 10_000

// measureOpenTransactions sees what open half messages do to those that send.
func (in *instance) measureOpenTransactions(ctx context.Context, s settings, note func(string, float64)) error {
	if err := in.createTopic("open", 4); err != nil {
		return err
	}
	load := sendLoad{topic: "open", queues: 4, connections: 1, inFlight: 1, body: 128, duration: s.warm / 4, most: 50_000}
	if _, err := in.send(ctx, load); err != nil {
		return err
	}
	load.duration = s.phase
	alone, err := in.send(ctx, load)
	if err != nil {
		return err
	}
	t, err := newTransactions(in.addr(), "open", 0, 128, 1)
	if err != nil {
		return err
	}
	defer t.conn.Close()
	t.open = true
	var left atomic.Int64
	left.Store(openHalves)
	if err := t.run(ctx, 32, &left, s.warm); err != nil {
		return err
	}
	beside, err := in.send(ctx, load)
	if err != nil {
		return err
	}
	note("sends beside 10000 open transactions: p50 alone", alone.latency(50))
	note("sends beside 10000 open transactions: p50", beside.latency(50))
	note("sends beside 10000 open transactions: p50, beside/alone", beside.latency(50)/alone.latency(50))
	return nil
}

func (in *instance) measureTransactions(ctx context.Context, s settings, note func(string, float64)) error {
	if err := in.createTopic("transactions", 16); err != nil {
		return err
	}
	r, err := in.transact(ctx, "transactions", 16, 64, 16, 128, 300_000, s.phase)
	if err != nil {
		return err
	}
	note("transaction 128 B, 64x16: server CPU", r.cpuPerMessage())
	note("transaction 128 B, 64x16: throughput", r.perSecond())
	return nil
}
