package consumequeue

import (
	"errors"
	"syscall"
	"testing"

	"rocketd/store/vfs"
)

// A queue of delayed messages is in its file as soon as an entry is appended, also of one that is dispatched again:
// the official broker would make lost entries with wrong times. Other queues may wait for the flusher.
func TestDelayedEntriesAreWrittenAtOnce(t *testing.T) {
	const topic = "SCHEDULE_TOPIC_XXXX"
	mem := vfs.NewMem(nil)
	table := open(t, mem, false)
	for n := range int64(perFile + 3) {
		if err := table.Append(topic, 1, n, entry(n)); err != nil {
			t.Fatal(err)
		}
	}
	add(t, table, 0, 0, 3)
	written := func(table *Table) int64 {
		// The process dies: what is in memory only is gone, what was written is not.
		again := open(t, mem, true)
		if q := again.Find("T", 0); q != nil {
			t.Errorf("the queue of a topic was written: [%d, %d)", q.Min(), q.Max())
		}
		return again.Find(topic, 1).Max()
	}
	if got := written(table); got != perFile+3 {
		t.Errorf("%d entries in the files, want %d", got, perFile+3)
	}
	// Recovery after a crash cuts the queue back and appends again.
	table = open(t, mem, true)
	if err := table.Truncate(5*100, nil); err != nil {
		t.Fatal(err)
	}
	for n := int64(5); n < 8; n++ {
		if err := table.Append(topic, 1, n, entry(n)); err != nil {
			t.Fatal(err)
		}
	}
	if got := written(table); got != 8 {
		t.Errorf("%d entries in the files, want 8", got)
	}
}

// A topic that was deleted and made again has its first entry in the file at once: the official broker would take the older
// topic's records, which the log still has, for this one's.
func TestSuccessorIsInTheFile(t *testing.T) {
	mem := vfs.NewMem(nil)
	table := open(t, mem, false)
	add(t, table, 0, 0, 3)
	if q := open(t, mem, true).Find("T", 0); q != nil {
		t.Errorf("a new topic's queue is in a file: [%d, %d)", q.Min(), q.Max())
	}
	if err := table.Destroy(table.Find("T", 0)); err != nil {
		t.Fatal(err)
	}
	again := func(n int64) Entry { return Entry{PhyOffset: 1000 + n*100, Size: 100, TagsCode: -n} }
	for n := range int64(3) {
		if err := table.Append("T", 0, n, again(n)); err != nil {
			t.Fatal(err)
		}
	}
	found := open(t, mem, true).Find("T", 0)
	if e, ok := found.Entry(0); found.Max() != 1 || !ok || e != again(0) {
		t.Errorf("the file ends at %d and begins with %+v", found.Max(), e)
	}

	// Recovery dispatches both again.
	table = open(t, vfs.NewMem(nil), true)
	mem = table.fs.(*vfs.Mem)
	add(t, table, 0, 0, 3)
	if err := table.Append("T", 0, 0, again(0)); err != nil {
		t.Fatal(err)
	}
	found = open(t, mem, true).Find("T", 0)
	if e, ok := found.Entry(0); found.Max() != 1 || !ok || e != again(0) {
		t.Errorf("after recovery the file ends at %d and begins with %+v", found.Max(), e)
	}
}

// While the disk is full a large tail is not tried again for each entry.
func TestDelayedEntriesWaitForAFullDisk(t *testing.T) {
	creations := 0
	full := vfs.NewFault(vfs.NewMem(nil), func(o vfs.Op) error {
		if o.Kind == vfs.OpCreate {
			creations++
			return syscall.ENOSPC
		}
		return nil
	})
	table := open(t, full, false)
	const perTail = tailSize / EntrySize
	for n := range int64(10 * perTail) {
		if err := table.Append("SCHEDULE_TOPIC_XXXX", 1, n, entry(n)); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	if creations > perTail+10 {
		t.Errorf("%d tries for %d entries", creations, 10*perTail)
	}
	if got := table.Find("SCHEDULE_TOPIC_XXXX", 1).Max(); got != 10*perTail {
		t.Errorf("max %d, want %d", got, 10*perTail)
	}
}

// Of a crowd of queues each flush makes the files that lack, while the small tails of queues that have one wait: a stop has
// little left to do.
func TestNewQueuesDoNotWait(t *testing.T) {
	const queues = manyDirty + 3*someOthers
	mem := vfs.NewMem(nil)
	table := open(t, mem, false)
	round := func(n int64) {
		for id := range int32(queues) {
			if err := table.Append("T", id, n, entry(n*queues+int64(id))); err != nil {
				t.Fatal(err)
			}
		}
	}
	// lacking counts the queues of which an entry is in memory only.
	lacking := func() (n int) {
		for _, q := range table.All() {
			q.mu.Lock()
			if len(q.tail) > 0 {
				n++
			}
			q.mu.Unlock()
		}
		return n
	}
	round(0)
	for before := queues; before > 0; {
		if err := table.Flush(2); err != nil {
			t.Fatal(err)
		}
		left := lacking()
		if left >= before {
			t.Fatalf("a flush made no file, %d lack", left)
		}
		before = left
	}
	round(1)
	if err := table.Flush(2); err != nil {
		t.Fatal(err)
	}
	if left := lacking(); left < queues-someOthers-1000 || left > queues-someOthers {
		t.Errorf("%d of %d small tails wait, want about all but %d", left, queues, someOthers)
	}
	if err := table.Flush(0); err != nil {
		t.Fatal(err)
	}
	if left := lacking(); left > 0 {
		t.Errorf("the thorough flush left %d tails", left)
	}
}
