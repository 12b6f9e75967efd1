//go:build conformance

package sql92

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rocketd/conformance/wire"
)

// stored is a record of the queue that TestFilteredPullLimits asks, and what the filters look at.
type stored struct {
	record []byte
	tag    string
	n      int
}

// limits of an answer by the default configuration, and of a look at the queue.
const (
	answerBytes = 262144 // maxTransferBytesOnMessageInMemory
	answerCount = 32     // maxTransferCountOnMessageInMemory
	lookAhead   = 800    // 16000 bytes of entries
)

// pullResult is what a pull from an offset that the queue has is answered, by the rules of
// DefaultMessageStore#getMessage: whether the answer is full is asked before the filter, with the size of the next message
// whether that passes or not; the first message is always given; no look goes beyond the end of a file of the queue.
func pullResult(queue []stored, offset, most int, pass func(stored) bool) (next int, body []byte) {
	end := min(offset+max(lookAhead, most), (offset/queueFile+1)*queueFile, len(queue))
	count := 0
	for next = offset; next < end; next++ {
		m := queue[next]
		if count > 0 && (count >= min(most, answerCount) || len(body)+len(m.record) > answerBytes) {
			break
		}
		if pass(m) {
			body, count = append(body, m.record...), count+1
		}
	}
	return next, body
}

// TestFilteredPullLimits: where an answer ends, by count, by bytes, by the look-ahead and by the file of the queue, when a
// filter takes none, few, half or all of the messages, which are of one byte to 300 KB and lie between those of another topic.
func TestFilteredPullLimits(t *testing.T) {
	t.Parallel()
	s := dial(t)
	topic, other := s.topic("PullLimits", 1), s.topic("PullLimitsBetween", 1)
	r := rand.New(rand.NewPCG(21, 4))
	const small, large = 1900, 80
	for sent := 0; sent < small+large; {
		var run []*wire.Frame
		for ; len(run) < 40 && sent < small+large; sent++ {
			size := 1 + r.IntN(60)
			switch {
			case sent >= small && sent%3 == 0:
				size = 1 + r.IntN(300<<10)
			case sent >= small:
				size = 1 + r.IntN(20<<10)
			}
			properties := wire.Properties("TAGS", "T"+strconv.Itoa(sent%4), "n", strconv.Itoa(sent))
			run = append(run, sendOf(topic, properties, size))
			if r.IntN(3) == 0 {
				run = append(run, sendOf(other, properties, 1+r.IntN(400)))
			}
		}
		pending, err := s.SendAll(run)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pending {
			if a, err := p.Wait(patience); err != nil || a.Code != 0 {
				t.Fatalf("send: %v, %v", a, err)
			}
		}
	}
	s.stored(topic, small+large)
	queue := s.records(topic, small+large)

	for _, c := range []struct {
		kind, expression string
		pass             func(stored) bool
	}{
		{"TAG", "*", func(stored) bool { return true }},
		{"TAG", "T1", func(m stored) bool { return m.tag == "T1" }},
		{"TAG", "T0 || T3 || T9", func(m stored) bool { return m.tag == "T0" || m.tag == "T3" }},
		{"TAG", "T9", func(stored) bool { return false }},
		{"SQL92", "n >= 0", func(stored) bool { return true }},
		{"SQL92", "TAGS IN ('T1', 'T2')", func(m stored) bool { return m.tag == "T1" || m.tag == "T2" }},
		{"SQL92", "n < 0 OR missing = 'x'", func(stored) bool { return false }},
		{"SQL92", "n BETWEEN 810 AND 812 OR n = 1950", func(m stored) bool { return 810 <= m.n && m.n <= 812 || m.n == 1950 }},
		{"SQL92", "TAGS = 'T2' AND n > 900", func(m stored) bool { return m.tag == "T2" && m.n > 900 }},
		{"SQL92", "n > 1899", func(m stored) bool { return m.n > 1899 }},
	} {
		offsets := []int{0, 1, 9, 10, 199, 200, 201, 811, 999, 1000, 1099, 1100, 1101, 1900, len(queue) - 1}
		for range 25 {
			offsets = append(offsets, r.IntN(len(queue)), small-32+r.IntN(large+32))
		}
		for _, offset := range offsets {
			most := []int{1, 2, 31, 32, 33, 64, 801, 1 + r.IntN(64)}[r.IntN(8)]
			what := fmt.Sprintf("%s %q from %d, at most %d", c.kind, c.expression, offset, most)
			a := s.ask(pull("G-sql", topic, c.expression, int64(offset)).Set("expressionType", c.kind).Set("maxMsgNums", strconv.Itoa(most)))
			next, body := pullResult(queue, offset, most, c.pass)
			code, remark := 0, "FOUND"
			if body == nil {
				code, remark = 20, "NO_MATCHED_MESSAGE"
			}
			if a.Code != code || a.Remark != remark {
				t.Errorf("%s: %d %s, want %d %s", what, a.Code, a.Remark, code, remark)
			}
			ext := fmt.Sprint(a.Ext["nextBeginOffset"], " ", a.Ext["minOffset"], " ", a.Ext["maxOffset"], " ", a.Ext["suggestWhichBrokerId"])
			if want := fmt.Sprint(next, " 0 ", len(queue), " 0"); ext != want {
				t.Errorf("%s: next, min, max, broker %s, want %s", what, ext, want)
			}
			if !bytes.Equal(a.Body, body) {
				t.Errorf("%s: a body of %d bytes, want %d", what, len(a.Body), len(body))
			}
		}
	}
}

func sendOf(topic, properties string, size int) *wire.Frame {
	return wire.Request(310, "a", "P-sql", "b", topic, "c", "TBW102", "d", "4", "e", "0", "f", "0", "g", "1700000000000", "h", "0",
		"i", properties, "j", "0", "k", "false", "m", "false").WithBody([]byte(strings.Repeat("x", size)))
}

// records are all of queue 0, pulled without a filter one by one, so that no limit plays a part. A server may store what comes on
// one connection in another order, but each message once.
func (s session) records(topic string, count int) (queue []stored) {
	s.Helper()
	var run []*wire.Frame
	for offset := range count {
		run = append(run, pull("G-sql", topic, "*", int64(offset)).Set("expressionType", "TAG").Set("maxMsgNums", "1"))
	}
	for part := range slices.Chunk(run, 100) {
		pending, err := s.SendAll(part)
		if err != nil {
			s.Fatal(err)
		}
		for _, p := range pending {
			a, err := p.Wait(patience)
			if err != nil {
				s.Fatal(err)
			}
			ms, err := wire.Messages(a.Body)
			if err != nil || len(ms) != 1 || int(binary.BigEndian.Uint32(a.Body)) != len(a.Body) || ms[0].QueueOffset != int64(len(queue)) {
				s.Fatalf("offset %d: %d %s, %d messages, %v", len(queue), a.Code, a.Remark, len(ms), err)
			}
			n, err := strconv.Atoi(ms[0].Properties["n"])
			if err != nil {
				s.Fatal(err)
			}
			queue = append(queue, stored{a.Body, ms[0].Properties["TAGS"], n})
		}
	}
	ns := make([]bool, count)
	for _, m := range queue {
		ns[m.n] = true
	}
	if slices.Contains(ns, false) {
		s.Fatal("not every message is in the queue once")
	}
	return queue
}
