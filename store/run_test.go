package store

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"rocketd/compat"
	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// byRecord chooses by a tag and by the first byte of the body.
type byRecord struct {
	code  int64 // 0: every tag
	below byte
}

func (f byRecord) MatchQueue(tagsCode int64) bool { return f.code == 0 || tagsCode == f.code }
func (f byRecord) MatchRecord(r message.Record) bool {
	return r.Body()[0] < f.below
}

// Whatever the filter lets pass, a Get gives what the official loop over the entries gives: it looks at one message after the
// other, and ends before the one with which the answer would be too large or too long (DefaultMessageStore#getMessage of 4.9.8).
func TestGetIsTheOfficialLoop(t *testing.T) {
	cfg := smallConfig("/store")
	cfg.MappedFileSizeCommitLog = 1 << 20
	cfg.MappedFileSizeConsumeQueue = 20_000
	s := openStore(t, vfs.NewMem(nil), cfg, Options{})
	defer func() { closeStore(t, s) }()
	const count = 950 // of one file of the queue
	var all [count]*message.Message
	putAll(t, s, count, func(n int) *message.Message {
		m := newMessage("T", 0, n)
		m.Body = bytes.Repeat([]byte{byte(n * 7919 % 101)}, 1+n*n%1500)
		all[n] = m
		return m
	})
	putAll(t, s, 300, func(n int) *message.Message { return newMessage([]string{"T2", "T3"}[n/2%2], 0, n) }) // in pairs
	rapid.Check(t, func(r *rapid.T) {
		offset := rapid.IntRange(0, count-1).Draw(r, "offset")
		most := rapid.IntRange(1, 900).Draw(r, "max")
		var now = *s.Config()
		now.MaxTransferCountOnMessageInMemory = rapid.IntRange(1, 900).Draw(r, "count")
		now.MaxTransferBytesOnMessageInMemory = rapid.IntRange(1, 400_000).Draw(r, "bytes")
		old := s.config.Swap(&now)
		defer s.config.Store(old)
		f := byRecord{code: int64(compat.HashCode("Tag1")), below: byte(rapid.IntRange(0, 101).Draw(r, "below"))}
		if rapid.Bool().Draw(r, "every tag") {
			f.code = 0
		}
		var filter Filter = f
		if f.below > 100 && f.code == 0 {
			filter = nil
		}

		var want []int64
		size, at := 0, offset
		for ; at < count && at < offset+max(800, most); at++ {
			m := all[at]
			if n := len(want); n > 0 && (n >= most || n >= now.MaxTransferCountOnMessageInMemory ||
				size+message.RecordSize(m) > now.MaxTransferBytesOnMessageInMemory) {
				break
			}
			if (f.code == 0 || at%2 == 1) && m.Body[0] < f.below {
				want, size = append(want, int64(at)), size+message.RecordSize(m)
			}
		}
		status := NoMatchedMessage
		if len(want) > 0 {
			status = Found
		}

		got := s.Get("T", 0, int64(offset), most, filter)
		var offsets []int64
		for _, record := range records(t, got.Body) {
			offsets = append(offsets, record.QueueOffset())
			if !bytes.Equal(record.Body(), all[record.QueueOffset()].Body) {
				r.Fatalf("the message of %d is another's", record.QueueOffset())
			}
		}
		if got.Status != status || got.NextBeginOffset != int64(at) || got.Count != len(want) || fmt.Sprint(offsets) != fmt.Sprint(want) {
			r.Fatalf("%v next %d, %d: %v; want %v %d %v", got.Status, got.NextBeginOffset, got.Count, offsets, status, at, want)
		}
		if last := s.log.MaxOffset() - got.BehindBytes; got.Count > 0 {
			before, _ := s.queues.Find("T", 0).Entry(int64(at) - 1)
			here, ok := s.queues.Find("T", 0).Entry(int64(at))
			if last != before.PhyOffset && !(ok && last == here.PhyOffset) {
				r.Fatalf("behind by %d: neither the last entry nor the one that ended it", got.BehindBytes)
			}
		}
		if cap(got.Body) > 0 {
			RecycleBody(got.Body)
		}
	})
	// Neighbours of other queues lie between the messages.
	for _, c := range []struct {
		topic string
		f     Filter
		want  int
	}{{"T2", nil, 32}, {"T3", nil, 32}, {"T2", byRecord{0, 'c'}, 32}, {"T3", byRecord{int64(compat.HashCode("Tag1")), 'c'}, 32}, {"T3", byRecord{0, 'b'}, 0}} {
		got := s.Get(c.topic, 0, 0, 32, c.f)
		if all := records(t, got.Body); len(all) != c.want || got.Count != c.want {
			t.Errorf("%s %v: %d messages, want %d", c.topic, c.f, len(all), c.want)
		}
	}
}

// An entry that leads back to a record whose memory has been taken for another gives that record all the same.
func TestRecordReadAgain(t *testing.T) {
	s := openStore(t, vfs.NewMem(nil), smallConfig("/store"), Options{})
	defer func() { closeStore(t, s) }()
	put(t, s, newMessage("T", 0, 0), newMessage("T", 0, 1), newMessage("T", 0, 2))
	q := s.queues.Find("T", 0)
	entries, err := q.Read(nil, 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	g := get{getScratch: &getScratch{entries: entries}, s: s, cfg: s.Config(), queue: q, max: 32, logEnd: s.log.MaxOffset()}
	for i, n := range []int64{0, 1, 0, 2, 1} {
		e := g.entry(int(n))
		record, err := g.record(int(n), e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := message.Check(record, true); err != nil || record.QueueOffset() != n {
			t.Fatalf("%d: %d in place of %d, %v", i, record.QueueOffset(), n, err)
		}
		if n > 0 {
			g.take(n, record)
		}
	}
}
