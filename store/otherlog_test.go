package store

import (
	"fmt"
	"math/rand"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// TestQueuesOfAnotherLog: queues and index that a session on another, empty log has made (a wrong storePathCommitLog, or its
// disk was not mounted) give way to those of the log that is there.
func TestQueuesOfAnotherLog(t *testing.T) {
	t.Parallel()
	topics := []string{"A", "B"}
	whole := vfs.NewMem(nil)
	s := openStore(t, whole, smallConfig("/store"), Options{})
	putAll(t, s, 2000, func(i int) *message.Message { return newMessage(topics[i%2], int32(i/2%2), i) })
	closeStore(t, s)
	for _, crashed := range []bool{false, true} {
		for _, official := range []bool{false, true} { // without our part of the checkpoint
			for _, n := range []int{1, 100, 700, 3000} {
				t.Run(fmt.Sprintf("crashed=%t,official=%t,%d", crashed, official, n), func(t *testing.T) {
					mem := copyOf(whole)
					cfg, wrong := smallConfig("/store"), smallConfig("/store")
					wrong.StorePathCommitLog = "/unmounted"
					s := openStore(t, mem, wrong, Options{})
					putAll(t, s, n, func(i int) *message.Message {
						m := newMessage(topics[i%2], int32(i/2%2), 5000+i)
						m.Body = append(m.Body, make([]byte, i%3)...)
						return m
					})
					if err := s.saveCheckpoint(); err != nil {
						t.Fatal(err)
					}
					disk := mem.Crash(100, rand.New(rand.NewSource(1)))
					closeStore(t, s)
					if crashed {
						mem = disk
					}
					if official {
						cutCheckpoint(t, mem)
					}

					s = openStore(t, mem, cfg, Options{})
					defer closeStore(t, s)
					for _, topic := range topics {
						for queueId := range int32(2) {
							if got := readAll(t, s, topic, queueId); len(got) != 500 {
								t.Errorf("%s %d: %d messages", topic, queueId, len(got))
							}
						}
					}
					for i := range 2000 {
						if got := s.Query(topics[i%2], fmt.Sprintf("key-%d", i), 64, 0, 1<<62).Records; len(got) != 1 {
							t.Fatalf("key-%d: %d records", i, len(got))
						}
					}
					if p := put(t, s, newMessage("A", 0, 2000))[0]; p.QueueOffset != 500 {
						t.Errorf("goes on at %d", p.QueueOffset)
					}
				})
			}
		}
	}
}

// cutCheckpoint leaves of the checkpoint what the official broker writes.
func cutCheckpoint(t *testing.T, mem *vfs.Mem) {
	t.Helper()
	data, err := vfs.Files{FS: mem}.ReadFile("/store/checkpoint")
	if err == nil {
		clear(data[24:])
		_ = mem.Remove("/store/checkpoint")
		err = vfs.Files{FS: mem}.WriteFile("/store/checkpoint", data)
	}
	if err != nil {
		t.Fatal(err)
	}
}
