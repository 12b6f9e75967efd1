package commitlog

import (
	"errors"
	"io/fs"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/segment"
)

// The official broker, started on a directory in use, removes the file made in advance before it looks at the lock. What
// is appended later must be in a file that has a name.
func TestNextFileRemovedByOthers(t *testing.T) {
	o := options()
	l := started(t, o)
	first := msg(0, "first", fileSize/2)
	mustAppend(t, l, put(first))
	next := o.Dir + "/" + segment.Name(fileSize)
	there := func() bool { _, err := o.FS.Stat(next); return err == nil }
	eventually(t, "the next file is made in advance", there)
	if err := o.FS.Remove(next); err != nil {
		t.Fatal(err)
	}
	second := msg(0, "second", fileSize/2)
	mustAppend(t, l, put(second))
	if !there() || second.PhyOffset != fileSize {
		t.Fatalf("the second message stands at %d, its file is there: %v", second.PhyOffset, there())
	}
	same(t, scan(t, l, 0), []message.Message{*first, *second})

	// The one behind is made as ever; at the end it is no fault that it is gone.
	next = o.Dir + "/" + segment.Name(2*fileSize)
	eventually(t, "the next file is made in advance", there)
	if err := o.FS.Remove(next); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := o.FS.Stat(next); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	same(t, scan(t, started(t, o), 0), []message.Message{*first, *second})
}
