package commitlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/segment"
	"rocketd/store/vfs"
)

func TestAppend(t *testing.T) {
	clock := int64(1795978468297)
	o := options(fixedClock(&clock))
	l := started(t, o)
	if l.MinOffset() != 0 || l.MaxOffset() != 0 {
		t.Errorf("an empty log: %d to %d", l.MinOffset(), l.MaxOffset())
	}
	one, batch, last := put(msg(1, "one", 0)), put(msg(2, "a", 0), msg(2, "b", 9), msg(2, "c", 0)), put(msg(1, "last", 0))
	run := []*Put{one, batch, last}
	l.Append(run)
	s := int64(message.RecordSize(msg(1, "one", 0))) // 91 + 3 + 6 + 9
	if s != 109 {
		t.Fatalf("size of a record: %d", s)
	}
	for i, want := range []Put{
		{PhyOffset: 0, End: s, QueueOffset: 0, Size: int32(s)},
		{PhyOffset: s, End: 4*s + 2, QueueOffset: 0, Size: int32(3*s + 2), PhyOffsets: []int64{s, 2*s - 2, 3*s + 4}},
		{PhyOffset: 4*s + 2, End: 5*s + 3, QueueOffset: 1, Size: int32(s + 1)},
	} {
		p := run[i]
		if p.Err != nil || p.PhyOffset != want.PhyOffset || p.End != want.End || p.QueueOffset != want.QueueOffset || p.Size != want.Size ||
			p.StoreTimestamp != clock || !slices.Equal(p.PhyOffsets, want.PhyOffsets) {
			t.Errorf("put %d: %+v, want %+v", i, *p, want)
		}
	}
	if l.MaxOffset() != 5*s+3 || l.ConfirmOffset() != 5*s+3 {
		t.Errorf("MaxOffset %d, ConfirmOffset %d", l.MaxOffset(), l.ConfirmOffset())
	}
	got := scan(t, l, 0)
	same(t, got, []message.Message{*one.Message, *batch.Batch[0], *batch.Batch[1], *batch.Batch[2], *last.Message})
	for i, want := range []struct {
		body        string
		queueOffset int64
	}{{"one", 0}, {"a", 0}, {"b........", 1}, {"c", 2}, {"last", 1}} {
		if string(got[i].Body) != want.body || got[i].QueueOffset != want.queueOffset || got[i].StoreTimestamp != clock {
			t.Errorf("message %d: %+v", i, got[i])
		}
		r, err := l.Read([]byte("x"), got[i].PhyOffset, message.RecordSize(&got[i]))
		if err != nil || r[0] != 'x' || !bytes.Equal(r[1:], message.AppendRecord(nil, &got[i])) {
			t.Errorf("Read of message %d: %v", i, err)
		}
	}
}

// The rule of the end of a file: a record needs 8 bytes behind it; else a blank record of 8 bytes, whose size
// is all that was left, and the record stands at the start of the next file.
func TestBlank(t *testing.T) {
	full := message.RecordSize(msg(0, "", 0))
	for _, c := range []struct {
		left  int // bytes left after the second record, had it stayed
		rolls bool
	}{{8, false}, {9, false}, {7, true}, {0, true}, {-1, true}} {
		o := options()
		l := started(t, o)
		first := msg(0, "first", fileSize/2)
		second := msg(0, "second", fileSize-2*full-fileSize/2-c.left)
		mustAppend(t, l, put(first), put(second))
		if got := second.PhyOffset == fileSize; got != c.rolls {
			t.Fatalf("%d left: second record at %d", c.left, second.PhyOffset)
		}
		same(t, scan(t, l, 0), []message.Message{*first, *second})
		if !c.rolls {
			continue
		}
		end := message.RecordSize(first)
		file := raw(t, o, 0)
		if size, magic := binary.BigEndian.Uint32(file[end:]), binary.BigEndian.Uint32(file[end+4:]); int(size) != fileSize-end || magic != 0xCBD43194 {
			t.Errorf("blank record %d, %#x, want %d", size, magic, fileSize-end)
		}
		if rest := file[end+8:]; !bytes.Equal(rest, make([]byte, len(rest))) {
			t.Error("behind the blank record are not zeros")
		}
		if l.MinOffset() != 0 || l.MaxOffset() != fileSize+int64(message.RecordSize(second)) {
			t.Errorf("%d to %d", l.MinOffset(), l.MaxOffset())
		}
	}
}

// A batch moves as a whole; the messages of one run before it stay.
func TestBatchNeverSpans(t *testing.T) {
	l := started(t, options())
	before := msg(0, "before", fileSize/2)
	batch := put(msg(1, "a", fileSize/4), msg(1, "b", fileSize/4), msg(1, "c", 0))
	after := msg(0, "after", 0)
	mustAppend(t, l, put(before), batch, put(after))
	if batch.PhyOffset != fileSize || batch.QueueOffset != 0 || before.PhyOffset != 0 || after.PhyOffset != batch.End {
		t.Errorf("before at %d, batch at %d to %d, after at %d", before.PhyOffset, batch.PhyOffset, batch.End, after.PhyOffset)
	}
	same(t, scan(t, l, 0), []message.Message{*before, *batch.Batch[0], *batch.Batch[1], *batch.Batch[2], *after})
}

func TestTransactionBitsTakeNoQueueOffset(t *testing.T) {
	table := newOffsets()
	l := started(t, options(func(o *Options) { o.QueueOffsets = table }))
	mustAppend(t, l, put(msg(0, "x", 0)))
	for flag, want := range map[int32]int64{message.TransactionPrepared: 0, message.TransactionRollback: 0} {
		m := msg(0, "x", 0)
		m.SysFlag = flag
		mustAppend(t, l, put(m))
		if m.QueueOffset != want {
			t.Errorf("flag %#x: queue offset %d", flag, m.QueueOffset)
		}
	}
	m := msg(0, "x", 0)
	m.SysFlag = message.TransactionCommit
	if mustAppend(t, l, put(m)); m.QueueOffset != 1 || table.of("TopicA", 0) != 2 {
		t.Errorf("queue offset %d, next %d", m.QueueOffset, table.of("TopicA", 0))
	}
}

func TestTooLarge(t *testing.T) {
	table := newOffsets()
	largest := 1000
	l := started(t, options(func(o *Options) {
		o.QueueOffsets = table
		o.MaxRecord = func() int { return largest }
	}))
	fixed := message.RecordSize(msg(0, "", 0))
	long := msg(0, "", 0)
	long.Topic = strings.Repeat("t", 128)
	properties := msg(0, "", 0)
	properties.Properties = strings.Repeat("p", 32768)
	run := []*Put{
		put(msg(0, "fits", 1000-fixed)),
		put(msg(0, "", 1001-fixed)),
		put(long),
		put(msg(0, "a", 0), msg(0, "", 1001-fixed)),
		{},
		put(msg(0, "fits too", 0)),
	}
	l.Append(run)
	for i, want := range []bool{true, false, false, false, false, true} {
		if ok := run[i].Err == nil; ok != want || !ok && i != 4 && !errors.Is(run[i].Err, ErrTooLarge) {
			t.Errorf("put %d: %v", i, run[i].Err)
		}
	}
	if n := table.of("TopicA", 0); n != 2 || len(scan(t, l, 0)) != 2 {
		t.Errorf("next queue offset %d", n)
	}
	largest = 1 << 20 // the limit may change
	run = []*Put{
		put(properties),
		put(msg(0, "", fileSize-8-fixed)),
		put(msg(0, "", fileSize-7-fixed)),
		put(msg(0, "", fileSize/2), msg(0, "", fileSize/2)),
	}
	l.Append(run)
	for i, want := range []bool{false, true, false, false} {
		if ok := run[i].Err == nil; ok != want || !ok && !errors.Is(run[i].Err, ErrTooLarge) {
			t.Errorf("put %d: %v", i, run[i].Err)
		}
	}
}

func TestStoreTime(t *testing.T) {
	clock := int64(1_000_000)
	l := started(t, options(fixedClock(&clock)))
	for _, c := range []struct{ clock, want int64 }{
		{1_000_000, 1_000_000}, {1_000_005, 1_000_005}, {1_000_004, 1_000_005}, {999_005, 1_000_005}, // held
		{990_000, 990_000}, // set right
		{990_001, 990_001},
	} {
		clock = c.clock
		p := put(msg(0, "x", 0))
		if mustAppend(t, l, p); p.StoreTimestamp != c.want || p.Message.StoreTimestamp != c.want {
			t.Errorf("clock %d: stored at %d, want %d", c.clock, p.StoreTimestamp, c.want)
		}
	}
}

func TestNextFile(t *testing.T) {
	o := options()
	l := started(t, o)
	if got := names(t, o); len(got) != 0 {
		t.Errorf("an empty log has %v", got)
	}
	mustAppend(t, l, put(msg(0, "x", 0)))
	made := func(n int) func() bool { return func() bool { return len(names(t, o)) == n } }
	eventually(t, "the next file is made in advance", made(2))
	if b := raw(t, o, fileSize); len(b) != fileSize || !bytes.Equal(b, make([]byte, fileSize)) {
		t.Error("it has not the full size or not only zeros")
	}
	mustAppend(t, l, put(msg(0, "x", fileSize-200)))
	eventually(t, "the one behind it is made", made(3))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, o); !slices.Equal(got, []string{segment.Name(0), segment.Name(fileSize)}) {
		t.Errorf("after Close: %v", got)
	}
	l, found := recovered(t, o)
	defer l.Close()
	if len(found) != 2 {
		t.Errorf("%d records found", len(found))
	}
	l.Start()
	eventually(t, "it is made after a start, too", made(3))
}

func TestClosed(t *testing.T) {
	l := started(t, options())
	mustAppend(t, l, put(msg(0, "x", 0)))
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	p := put(msg(0, "x", 0))
	if l.Append([]*Put{p}); !errors.Is(p.Err, ErrClosed) {
		t.Errorf("Append: %v", p.Err)
	}
	l.WaitFlushed(1<<40, 0, func(err error) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("WaitFlushed: %v", err)
		}
	})
	if _, err := l.Read(nil, 0, 10); err == nil {
		t.Error("Read succeeds")
	}
	l, err := Open(options())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Append([]*Put{p}); p.Err == nil {
		t.Error("Append without Recover succeeds")
	}
}

// Many append, some read, one follows: order within each queue, offsets without gaps, every record as it was sent.
func TestConcurrent(t *testing.T) {
	confirmed := make(chan struct{}, 1)
	o := options(func(o *Options) {
		o.HotWindow = 3 * fileSize / 2
		o.Confirmed = func() {
			select {
			case confirmed <- struct{}{}:
			default:
			}
		}
	})
	l := started(t, o)
	const writers, each = 4, 300
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := 0; i < each; {
				var run []*Put
				for range 1 + i%5 {
					run = append(run, put(msg(int32(w), fmt.Sprint(i), 200)), put(msg(int32(w), fmt.Sprint(i+1), 0), msg(int32(w), fmt.Sprint(i+2), 50)))
					i += 3
				}
				mustAppend(t, l, run...)
				if i%7 == 0 {
					if err := l.Flush(); err != nil {
						t.Error(err)
					}
				}
				p := run[len(run)-1]
				b, err := l.Read(nil, p.PhyOffset, int(p.Size))
				if m, _, perr := message.Parse(b); err != nil || perr != nil || m.QueueOffset != p.QueueOffset {
					t.Errorf("Read: %v, %v", err, perr)
				}
			}
		})
	}
	var next int64
	seen := map[int32]int64{}
	follow := func() {
		n, err := l.Scan(next, func(at int64, r message.Record) error {
			q := r.QueueId()
			if want := seen[q]; r.QueueOffset() != want || !strings.HasPrefix(string(r.Body()), fmt.Sprint(want)) {
				return fmt.Errorf("queue %d has offset %d, body %.10q, want %d", q, r.QueueOffset(), r.Body(), want)
			}
			seen[q]++
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		next = n
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-confirmed:
				follow()
			}
		}
	}()
	wg.Wait()
	close(stop)
	<-stopped
	follow()
	total := int64(0)
	for _, n := range seen {
		total += n
	}
	if next != l.MaxOffset() || len(seen) != writers || total < writers*each {
		t.Errorf("followed to %d of %d: %v", next, l.MaxOffset(), seen)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, found := recovered(t, o)
	defer l.Close()
	if int64(len(found)) != total {
		t.Errorf("%d recovered of %d", len(found), total)
	}
}

// The goroutine that makes files in advance comes while the appender makes, and takes, the same file itself.
func TestNextFileIsMadeOnce(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem(nil), nil)
	l, _ := recovered(t, options(func(o *Options) { o.FS = fault })) // not started: the test is the goroutine
	defer l.Close()
	mustAppend(t, l, put(msg(0, "x", fileSize/2)))
	made := make(chan error, 1)
	fault.SetInject(func(o vfs.Op) error {
		if o.Kind == vfs.OpWrite && o.Size == message.BlankRecordSize {
			go func() { made <- l.makeNext(fileSize) }()
			select {
			case err := <-made:
				made <- err
				t.Error("the file could be made while the appender was about to take it")
			case <-time.After(20 * time.Millisecond):
			}
		}
		return nil
	})
	mustAppend(t, l, put(msg(0, "y", fileSize/2)))
	if err := <-made; err != nil || l.next.file != nil {
		t.Errorf("%v, made in advance: %v", err, l.next.file)
	}
	if got := scan(t, l, 0); len(got) != 2 {
		t.Errorf("%d messages", len(got))
	}
}
