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
