//go:build conformance

package disk

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// maxQueried is how many messages a query answers at most (maxMsgsNumBatch).
const maxQueried = 64

const queryNotFound = 22

func query(topic, key string, unique bool) *wire.Frame {
	return wire.Request(12, "topic", topic, "key", key, "maxNum", strconv.Itoa(maxQueried), "beginTimestamp", "0",
		"endTimestamp", strconv.FormatInt(math.MaxInt64, 10), "_UNIQUE_KEY_QUERY", strconv.FormatBool(unique))
}

// ask sends requests many at a time and hands each answer to f.
func (s *server) ask(frames []*wire.Frame, f func(i int, answer *wire.Frame)) {
	s.t.Helper()
	const window = 32
	for at := 0; at < len(frames); at += window {
		var pending []*wire.Pending
		for _, frame := range frames[at:min(at+window, len(frames))] {
			p, err := s.Conn.Send(frame)
			if err != nil {
				s.t.Fatal(err)
			}
			pending = append(pending, p)
		}
		for i, p := range pending {
			answer, err := p.Wait(patience)
			if err != nil {
				s.t.Fatalf("request %d %v: %v", frames[at+i].Code, frames[at+i].Ext, err)
			}
			f(at+i, answer)
		}
	}
}

// question is a query by key and the messages that it must find.
type question struct {
	topic, key string
	unique     bool
	want       []*message
}

// questions are the queries that find what a ledger holds.
func (l *ledger) questions() []*question {
	byKey := map[[2]string]*question{}
	var all []*question
	for p, q := range l.queues {
		for _, m := range q {
			keys := strings.Fields(m.properties["KEYS"])
			if k := m.properties["UNIQ_KEY"]; k != "" {
				keys = append(keys, k)
			}
			for i, k := range keys {
				at := [2]string{p.topic, k}
				if byKey[at] == nil {
					unique := i == len(keys)-1 && k == m.properties["UNIQ_KEY"]
					byKey[at] = &question{topic: p.topic, key: k, unique: unique}
					all = append(all, byKey[at])
				}
				byKey[at].want = append(byKey[at].want, m)
			}
		}
	}
	return all
}

// checkIndex finds every message by each of its keys. Messages with a key of the same hash may come too. Each comes
// once, except one for each time that the official broker has mended the index after a kill: it puts the last record
// that the index has into it again (IndexService#buildIndex compares by < and not <=).
func (l *ledger) checkIndex(s *server) {
	s.t.Helper()
	questions := l.questions()
	var frames []*wire.Frame
	for _, q := range questions {
		frames = append(frames, query(q.topic, q.key, q.unique))
	}
	missed, twice := 0, map[int64]string{}
	s.ask(frames, func(i int, answer *wire.Frame) {
		q := questions[i]
		if answer.Code != 0 && answer.Code != queryNotFound {
			s.t.Fatalf("query %s %q: %d %s", q.topic, q.key, answer.Code, answer.Remark)
		}
		found := split(s.t, answer.Body)
		have := 0
		for _, m := range q.want {
			if slices.ContainsFunc(found, func(f stored) bool { return bytes.Equal(f.raw, m.read.raw) }) {
				have++
			}
		}
		for i, m := range found {
			if slices.ContainsFunc(found[:i], func(f stored) bool { return f.PhyOffset == m.PhyOffset }) {
				twice[m.PhyOffset] = fmt.Sprintf("query %s %q: %s", q.topic, q.key, describe(m))
			}
		}
		limit := maxQueried
		if q.unique {
			limit = 32 // defaultQueryMaxNum
		}
		if have < min(len(q.want), limit) {
			if missed++; missed <= 5 {
				s.t.Errorf("query %s %q finds %d of %d messages (%d others)", q.topic, q.key, have, len(q.want), len(found)-have)
			}
		}
	})
	if mended := l.mended(); len(twice) > mended {
		s.t.Errorf("%d messages are found twice, at most %d may be: %v", len(twice), mended, twice)
	}
	if missed > 0 {
		s.t.Errorf("%d of %d queries by key miss a message", missed, len(questions))
	}
}

// mended counts the official broker's turns that followed a kill.
func (l *ledger) mended() (n int) {
	for i, e := range l.eras[1:] {
		if l.eras[i].kill && e.kind == target.Official {
			n++
		}
	}
	return n
}

// checkViews asks for messages by their offset ids, and for offsets by store times.
//
// The times only of rocketd: the official broker chooses a queue's file by its time of modification, which a mapped
// file gets when the kernel writes it back, and misses what is in another file.
func (l *ledger) checkViews(s *server, byTime bool) {
	s.t.Helper()
	var frames []*wire.Frame
	var want []*message
	for _, q := range l.queues {
		for i, m := range q {
			if i%5 == 0 || i == len(q)-1 {
				frames = append(frames, wire.Request(33, "offset", strconv.FormatInt(m.read.PhyOffset, 10)))
				want = append(want, m)
			}
		}
	}
	s.ask(frames, func(i int, answer *wire.Frame) {
		if answer.Code != 0 || !bytes.Equal(answer.Body, want[i].read.raw) {
			s.t.Errorf("view of %d (%s): %d %s", want[i].read.PhyOffset, want[i].id(), answer.Code, answer.Remark)
		}
	})
	if !byTime {
		return
	}
	frames = nil
	for _, m := range want {
		p := place{m.read.Topic, m.read.QueueId}
		frames = append(frames, p.request(29).Set("timestamp", strconv.FormatInt(m.read.StoreTimestamp, 10)))
	}
	wrong := 0
	s.ask(frames, func(i int, answer *wire.Frame) {
		m := want[i].read
		q := l.queues[place{m.Topic, m.QueueId}]
		offset, err := strconv.ParseInt(answer.Ext["offset"], 10, 64)
		if err != nil || offset < 0 || offset >= int64(len(q)) || q[offset].read.StoreTimestamp != m.StoreTimestamp {
			if wrong++; wrong <= 5 {
				s.t.Errorf("offset by time %d of %s %d (offset %d of %d): %v", m.StoreTimestamp, m.Topic, m.QueueId, m.QueueOffset, len(q), answer.Ext)
			}
		}
	})
	if wrong > 0 {
		s.t.Errorf("%d of %d searches by time miss", wrong, len(frames))
	}
}
