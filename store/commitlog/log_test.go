package commitlog

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"path"
	"sync"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/segment"
	"rocketd/store/vfs"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const fileSize = 64 << 10

// offsets is what the store keeps: the next offset of each queue. The log calls it under its append lock; the mutex
// is for tests that look.
type offsets struct {
	mu   sync.Mutex
	next map[string]int64
}

func newOffsets() *offsets { return &offsets{next: map[string]int64{}} }

func queueKey(topic string, queueId int32) string { return fmt.Sprintf("%s-%d", topic, queueId) }

func (o *offsets) Take(topic string, queueId int32, n int) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := queueKey(topic, queueId)
	at := o.next[k]
	o.next[k] = at + int64(n)
	return at
}

func (o *offsets) Untake(topic string, queueId int32, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next[queueKey(topic, queueId)] -= int64(n)
}

func (o *offsets) of(topic string, queueId int32) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.next[queueKey(topic, queueId)]
}

// setup is a change of the options of a test's log.
type setup func(*Options)

func syncFlush(o *Options) { o.SyncFlush = true }

func on(fsys vfs.FS, dir string) setup { return func(o *Options) { o.FS, o.Dir = fsys, dir } }

func fixedClock(ms *int64) setup {
	return func(o *Options) { o.Clock = func() time.Time { return time.UnixMilli(*ms) } }
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func options(changes ...setup) Options {
	o := Options{
		FS: vfs.NewMem(nil), Dir: "/store/commitlog", FileSize: fileSize, Clock: time.Now, Log: quiet(),
		HotWindow: fileSize, QueueOffsets: newOffsets(), FlushIntervalCommitLog: 1, FlushCommitLogThoroughInterval: 1,
	}
	for _, change := range changes {
		change(&o)
	}
	return o
}

// recovered is the log of o, opened and recovered from its beginning, not started; with what its records are.
func recovered(t testing.TB, o Options) (*Log, []message.Message) {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	var found []message.Message
	// As the store does: the offsets given out go on behind those found.
	table, _ := o.QueueOffsets.(*offsets)
	err = l.Recover(l.MinOffset(), true, func(at int64, r message.Record) error {
		m := r.Message()
		if m.PhyOffset != at {
			return fmt.Errorf("record of %d at %d", m.PhyOffset, at)
		}
		found = append(found, m)
		if table != nil && message.Queued(m.SysFlag) {
			table.next[queueKey(m.Topic, m.QueueId)] = m.QueueOffset + 1
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return l, found
}

// started is a log in use, closed when the test ends.
func started(t testing.TB, o Options) *Log {
	t.Helper()
	l, _ := recovered(t, o)
	l.Start()
	t.Cleanup(func() { l.Close() })
	return l
}

// msg is a message for a queue whose body is text, filled up to size bytes.
func msg(queueId int32, text string, size int) *message.Message {
	body := append([]byte(text), bytes.Repeat([]byte("."), max(0, size-len(text)))...)
	return &message.Message{
		Topic: "TopicA", QueueId: queueId, BornTimestamp: 1, Body: body, Properties: "TAGS\x01TagA",
		BornHost: netip.MustParseAddrPort("127.0.0.1:1"), StoreHost: netip.MustParseAddrPort("127.0.0.1:10911"),
	}
}

func put(m ...*message.Message) *Put {
	if len(m) == 1 {
		return &Put{Message: m[0]}
	}
	return &Put{Batch: m}
}

func mustAppend(t testing.TB, l *Log, run ...*Put) {
	t.Helper()
	l.Append(run)
	for i, p := range run {
		if p.Err != nil {
			t.Fatalf("put %d: %v", i, p.Err)
		}
	}
}

// scan returns all visible messages.
func scan(t testing.TB, l *Log, from int64) []message.Message {
	t.Helper()
	var found []message.Message
	next, err := l.Scan(from, func(at int64, r message.Record) error {
		found = append(found, r.Message())
		return nil
	})
	if err != nil || next != l.ConfirmOffset() {
		t.Fatalf("Scan ends at %d of %d: %v", next, l.ConfirmOffset(), err)
	}
	return found
}

// same compares stored messages.
func same(t testing.TB, got, want []message.Message) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d messages, want %d", len(got), len(want))
	}
	for i := range got {
		if a, b := message.AppendRecord(nil, &got[i]), message.AppendRecord(nil, &want[i]); !bytes.Equal(a, b) {
			t.Fatalf("message %d is %x\nwant %x", i, a, b)
		}
	}
}

// raw is the bytes of the file that begins at start.
func raw(t testing.TB, o Options, start int64) []byte {
	t.Helper()
	b, err := vfs.Files{FS: o.FS}.ReadFile(path.Join(o.Dir, segment.Name(start)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func names(t testing.TB, o Options) (names []string) {
	t.Helper()
	list, err := o.FS.List(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal("never: ", what)
		}
		<-time.After(time.Millisecond)
	}
}
