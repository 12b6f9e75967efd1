//go:build conformance

package disk

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// More turns, of servers and with ends that chance chooses. CONFORMANCE_SEED repeats a run.
func TestTurnsByChance(t *testing.T) {
	if !long() {
		t.Skip("CONFORMANCE_LONG is not set")
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("CONFORMANCE_SEED"); s != "" {
		seed = uint64(number(t, s))
	}
	for name, conf := range map[string]map[string]string{
		"asynchronous": {}, "synchronous": {"flushDiskType": "SYNC_FLUSH"}, "index not safe": {"messageIndexSafe": "false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Logf("CONFORMANCE_SEED=%d", seed)
			rng := rand.New(rand.NewPCG(seed, seed))
			var eras []*era
			for range 12 {
				e := &era{kind: selected(t), kill: rng.IntN(2) == 0, v6: rng.IntN(3) == 0}
				if rng.IntN(2) == 0 {
					e.kind = target.Official
				}
				eras = append(eras, e)
			}
			eras[len(eras)-1].kind = target.Official
			all := maps.Clone(small)
			maps.Copy(all, conf)
			takeTurns(t, eras, all, 6+rng.IntN(10))
		})
	}
}

// Files of the official sizes that are full: a second file of the log, and of a queue.
func TestTurnsOnFullFiles(t *testing.T) {
	if !long() {
		t.Skip("CONFORMANCE_LONG is not set")
	}
	other := selected(t)
	eras := []*era{{kind: other}, {kind: target.Official, kill: true}, {kind: other, kill: true}, {kind: target.Official}, {kind: other}}
	r := newTurns(t, eras, defaults, 5)
	r.big = &big{}
	r.take(eras)
}

const (
	fillerTopic  = "Filler"  // large messages: the body begins with the queue offset
	counterTopic = "Counter" // very many messages in queue 0: the body is the queue offset
	fillerBody   = 4 << 20   // maxMessageSize
	perBatch     = 400
)

// big is what fills large files: too much to be kept in the ledger.
type big struct{ filled, counted int64 }

// send adds two fifths of a file of the log, and as much to a queue.
func (b *big) send(s *server) {
	s.t.Helper()
	if b.filled == 0 {
		s.Done(createTopic(fillerTopic, 1))
		s.Done(createTopic(counterTopic, 1))
	}
	w := &sender{server: s}
	for range (1 << 30) * 2 / 5 / fillerBody {
		body := make([]byte, fillerBody)
		binary.BigEndian.PutUint64(body, uint64(b.filled))
		s.expectOffset(w.frame(place{fillerTopic, 0}, &message{body: body, born: millis()}, ""), b.filled)
		b.filled++
	}
	for range 120_000 / perBatch {
		var bodies [][]byte
		for i := range int64(perBatch) {
			bodies = append(bodies, strconv.AppendInt(nil, b.counted+i, 10))
		}
		f := w.frame(place{counterTopic, 0}, &message{body: wire.Batch("", bodies...), born: millis()}, "").Set("m", "true")
		f.Code = 320
		s.expectOffset(f, b.counted)
		b.counted += perBatch
	}
	b.check(s)
}

func (s *server) expectOffset(f *wire.Frame, want int64) {
	s.t.Helper()
	if got := s.Number("queueOffset", f); got != want {
		s.t.Fatalf("a message of %s got queue offset %d, want %d", f.Ext["b"], got, want)
	}
}

// check reads all large messages, and the many around the ends of files.
func (b *big) check(s *server) {
	s.t.Helper()
	if b.filled == 0 {
		return
	}
	filler, counter := place{fillerTopic, 0}, place{counterTopic, 0}
	until(s.t, "the large messages are dispatched", func() bool { return s.maxOffset(counter) >= b.counted })
	for p, end := range map[place]int64{filler: b.filled, counter: b.counted} {
		if first, max := s.minOffset(p), s.maxOffset(p); first != 0 || max != end {
			s.t.Errorf("%s: %d to %d, want 0 to %d", p, first, max, end)
		}
	}
	for i := range b.filled {
		ms := split(s.t, s.Done(pull(filler, i).Set("maxMsgNums", "1")).Body)
		if len(ms) != 1 || ms[0].QueueOffset != i || len(ms[0].Body) != fillerBody || binary.BigEndian.Uint64(ms[0].Body) != uint64(i) {
			s.t.Fatalf("%s offset %d: %d messages", filler, i, len(ms))
		}
	}
	for _, from := range []int64{0, 119_990, 239_990, 299_990, b.counted - 30} {
		if from >= b.counted {
			continue
		}
		ms := split(s.t, s.Done(pull(counter, from)).Body)
		for i, m := range ms {
			if want := strconv.AppendInt(nil, from+int64(i), 10); m.QueueOffset != from+int64(i) || !bytes.Equal(m.Body, want) {
				s.t.Fatalf("%s offset %d: %s", counter, from+int64(i), describe(m))
			}
		}
		if len(ms) == 0 {
			s.t.Errorf("%s offset %d: no message", counter, from)
		}
	}
}

// printAll reads the topics of the eras with the stock client, by mqadmin.
func (r *turns) printAll(s *server, eras int) {
	r.t.Helper()
	for n := range eras {
		topic := "Era" + strconv.Itoa(n)
		out, err := r.target.Mqadmin(r.t, "printMsg", "-t", topic, "-d", "false") // it cannot print an empty body
		if err != nil {
			r.t.Fatal(err)
		}
		// Delayed messages may be delivered meanwhile.
		count := func() int {
			return len(r.l.queues[place{topic, 0}]) + len(r.l.queues[place{topic, 1}])
		}
		before := count()
		r.l.readNew(s, []place{{topic, 0}, {topic, 1}})
		if got := strings.Count(out, "MSGID: "); got < before || got > count() {
			r.t.Errorf("printMsg of %s prints %d of %d messages:\n%.1000s", topic, got, before, out)
		}
	}
}
