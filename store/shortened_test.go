package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"rocketd/protocol/message"
)

// TestShortenedQueues: queues whose first or last file, or all of them, have gone or are damaged behind a place are made again, after a
// stop and after a kill; what a client has deleted stays deleted.
func TestShortenedQueues(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(queue string) error{
		"last file":  func(queue string) error { return os.Remove(filepath.Join(queue, "00000000000000001000")) },
		"first file": func(queue string) error { return os.Remove(filepath.Join(queue, "00000000000000000000")) },
		"all files":  os.RemoveAll,
		"empty folder": func(queue string) error {
			return errors.Join(os.RemoveAll(queue), os.Mkdir(queue, 0o755))
		},
		"topic":       func(queue string) error { return os.RemoveAll(filepath.Dir(queue)) },
		"cut to zero": func(queue string) error { return os.Truncate(filepath.Join(queue, "00000000000000001000"), 0) },
		"garbage": func(queue string) error {
			f, err := os.OpenFile(filepath.Join(queue, "00000000000000001000"), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			b := make([]byte, 400)
			for i := range b {
				b[i] = 0xff
			}
			_, err = f.WriteAt(b, 100)
			return err
		},
	} {
		for i := range 4 {
			killed, hint := i%2 == 1, i < 2
			if !hint && (name == "all files" || name == "topic") {
				continue // nothing tells these from a queue that was deleted
			}
			t.Run(fmt.Sprintf("%s, killed %t, hint %t", name, killed, hint), func(t *testing.T) {
				t.Parallel()
				h := &hinted{t: t, root: t.TempDir(), each: queuesEach}
				h.open()
				for i := range 3 {
					for queueId := range h.each {
						var run []*message.Message
						for n := range 70 { // 50 entries a file
							run = append(run, newMessage(fmt.Sprintf("topic%d", i), queueId, n))
						}
						put(t, h.Store, run...)
					}
				}
				h.close()
				h.open()
				if err := h.DeleteTopics(func(topic string) bool { return topic != "topic2" }); err != nil {
					t.Fatal(err)
				}
				h.put(0, 1)
				if err := h.saveCheckpoint(); err != nil {
					t.Fatal(err)
				}
				h.put(0, 1)
				if killed {
					h.kill()
				} else {
					h.close()
				}
				if err := spoil(filepath.Join(h.root, "consumequeue/topic1/2")); err != nil {
					t.Fatal(err)
				}
				if !hint { // as after another broker
					if err := os.Remove(filepath.Join(h.root, hintName)); err != nil {
						t.Fatal(err)
					}
				}
				h.open()
				defer h.close()
				for topic, want := range map[string]int{"topic0": 72, "topic1": 70, "topic2": 0} {
					for queueId := range int32(queuesEach) {
						if got := readAll(t, h.Store, topic, queueId); len(got) != want {
							t.Errorf("%s %d: %d messages, want %d", topic, queueId, len(got), want)
						}
					}
				}
				if p := put(t, h.Store, newMessage("topic1", 2, 70))[0]; p.QueueOffset != 70 {
					t.Errorf("goes on at %d", p.QueueOffset)
				}
			})
		}
	}
}
