package store

import (
	"bytes"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/consumequeue"
	"rocketd/store/vfs"
)

// mendStore is a store whose queues have entries in four files each: T 0 and T 1 in turns, all in files.
func mendStore(t *testing.T, fsys vfs.FS, root string, o Options) *Store {
	t.Helper()
	s := openStore(t, fsys, smallConfig(root), o)
	var run []*message.Message
	for i := range 180 {
		run = append(run, newMessage("T", 0, i), newMessage("T", 1, i))
	}
	put(t, s, run...)
	if err := s.saveCheckpoint(); err != nil {
		t.Fatal(err)
	}
	return s
}

// readPatiently is readAll, but an entry that is being mended is asked for until it can be read. It fails when a message is passed over.
func readPatiently(t *testing.T, s *Store, topic string, queueId int32, max int, filter Filter) (all []message.Record) {
	t.Helper()
	for offset := s.MinOffset(topic, queueId); offset < s.MaxOffset(topic, queueId); {
		var r GetResult
		waitFor(t, "the entry to be mended", func() bool {
			r = s.Get(topic, queueId, offset, max, filter)
			if r.Status == Mending && (r.Count != 0 || r.NextBeginOffset != offset) {
				t.Fatalf("%+v", r)
			}
			return r.Status != Mending
		})
		all = append(all, records(t, r.Body)...)
		if r.NextBeginOffset <= offset {
			t.Fatalf("Get(%d) = %+v", offset, r)
		}
		offset = r.NextBeginOffset
	}
	return all
}

func readBytes(t *testing.T, fsys vfs.FS, name string) []byte {
	t.Helper()
	b, err := vfs.Files{FS: fsys}.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// damages are what may have become of entries 60 to 80 of a queue, and the next file: what a disk, or somebody, has left in
// place of them.
var damages = map[string]func(b []byte, s *Store){
	"zeros": func(b []byte, _ *Store) { clear(b[10*20 : 30*20]) },
	"a page in the middle of entries": func(b []byte, _ *Store) {
		clear(b[10*20+7 : 30*20+13])
	},
	"ones": func(b []byte, _ *Store) {
		for i := range b[10*20 : 30*20] {
			b[10*20+i] = 0xff
		}
	},
	"random":         func(b []byte, _ *Store) { rand.New(rand.NewSource(4)).Read(b[10*20 : 30*20]) },
	"the whole file": func(b []byte, _ *Store) { clear(b) },
	"every other entry": func(b []byte, _ *Store) {
		for i := 1; i < 50; i += 2 {
			clear(b[i*20 : i*20+20])
		}
	},
	"two changed places": func(b []byte, _ *Store) {
		e := bytes.Clone(b[10*20 : 11*20])
		copy(b[10*20:], b[12*20:13*20])
		copy(b[12*20:], e)
	},
	"beyond the log":      func(b []byte, s *Store) { putEntry(b, 10, Entry{PhyOffset: s.MaxPhyOffset() + 7, Size: 200}) },
	"too large":           func(b []byte, _ *Store) { putEntry(b, 10, Entry{PhyOffset: 0, Size: 1 << 30}) },
	"across two files":    func(b []byte, _ *Store) { putEntry(b, 10, Entry{PhyOffset: 64<<10 - 10, Size: 200}) },
	"back":                func(b []byte, _ *Store) { putEntry(b, 10, consumequeue.Decode(b)) },
	"ahead":               func(b []byte, _ *Store) { putEntry(b, 10, consumequeue.Decode(b[40*20:])) },
	"no record's start":   func(b []byte, _ *Store) { e := consumequeue.Decode(b[10*20:]); e.PhyOffset++; putEntry(b, 10, e) },
	"of another size":     func(b []byte, _ *Store) { e := consumequeue.Decode(b[10*20:]); e.Size--; putEntry(b, 10, e) },
	"negative":            func(b []byte, _ *Store) { putEntry(b, 10, Entry{PhyOffset: -5, Size: 200}) },
	"the first of a file": func(b []byte, _ *Store) { clear(b[:20]) },
	"the last of a file":  func(b []byte, _ *Store) { clear(b[49*20:]) },
}

func putEntry(file []byte, i int, e Entry) {
	b := file[i*20:]
	for k := range 8 {
		b[k] = byte(uint64(e.PhyOffset) >> (56 - 8*k))
	}
	for k := range 4 {
		b[8+k] = byte(uint32(e.Size) >> (24 - 8*k))
	}
}

// tagFilter takes messages by the hash of their tag.
type tagFilter int64

func (f tagFilter) MatchQueue(tagsCode int64) bool  { return tagsCode == int64(f) }
func (f tagFilter) MatchRecord(message.Record) bool { return true }

// TestMend: whatever stands in the middle of a queue, a running store makes it again from the log, to the byte. Nobody who reads
// meanwhile passes over a message, whatever the number that is asked for at a time and wherever the reader begins.
func TestMend(t *testing.T) {
	t.Parallel()
	for name, damage := range damages {
		for _, real := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, disk %t", name, real), func(t *testing.T) {
				t.Parallel()
				var fsys vfs.FS = vfs.NewMem(nil)
				root := "/store"
				if real {
					fsys, root = vfs.OS, t.TempDir()
				}
				var log errorLog
				s := mendStore(t, fsys, root, Options{Log: log.logger()})
				defer func() { closeStore(t, s) }()
				file := root + "/consumequeue/T/0/00000000000000001000"
				want := readBytes(t, fsys, file)
				for _, max := range []int{1, 7, 32, 255} {
					b := bytes.Clone(want)
					damage(b, s)
					if f, err := fsys.Open(file); err != nil {
						t.Fatal(err)
					} else if _, err := f.WriteAt(b, 0); err != nil {
						t.Fatal(err)
					} else if err := f.Close(); err != nil {
						t.Fatal(err)
					}
					for i, r := range readPatiently(t, s, "T", 0, max, nil) {
						if r.QueueOffset() != int64(i) || r.QueueId() != 0 || string(r.Body()) != fmt.Sprintf("body-T-0-%d", i) {
							t.Fatalf("%d at a time: message %d is %d of queue %d", max, i, r.QueueOffset(), r.QueueId())
						}
					}
					if got := readBytes(t, fsys, file); !bytes.Equal(got, want) {
						t.Fatalf("%d at a time: the file is not as it was:\n%x\n%x", max, got, want)
					}
				}
				if !strings.Contains(log.String(), "A CONSUME QUEUE IS DAMAGED") || !strings.Contains(log.String(), "00000000000000001000") {
					t.Errorf("the log:\n%s", log.String())
				}
				if n := strings.Count(log.String(), "A CONSUME QUEUE IS DAMAGED"); n > 4*4 {
					t.Errorf("%d lines", n)
				}
			})
		}
	}
}
