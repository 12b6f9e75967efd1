package store

import (
	"bytes"
	"log/slog"
	"math/rand"
	"strings"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// TestLostAbortFile: after a kill the newest messages of quiet queues are in no file, while those of a busy one are. Nobody
// loses them when the abort file is lost too, whether there was a checkpoint of this store or none yet.
func TestLostAbortFile(t *testing.T) {
	t.Parallel()
	const busy = 500
	for _, checkpointed := range []bool{false, true} {
		for _, later := range []bool{false, true} { // the newest records are in a later file of the log
			mem, h := vfs.NewMem(nil), newHistory()
			cfg := crashConfig(AsyncFlush)
			if cfg.MappedFileSizeCommitLog = 1 << 20; later {
				cfg.MappedFileSizeCommitLog = 64 << 10
			}
			s := openStore(t, mem, cfg, Options{})
			h.put(s, newMessage("Quiet", 0, 0))
			if checkpointed {
				waitDispatched(t, s, s.MaxPhyOffset())
				if err := s.saveCheckpoint(); err != nil {
					t.Fatal(err)
				}
			}
			h.put(s, newMessage("Quiet", 0, 1))
			for n := 0; n < busy; n += 50 { // more than a queue keeps in memory
				var run []*message.Message
				for k := range 50 {
					run = append(run, newMessage("Busy", 0, n+k))
				}
				h.put(s, run...)
			}
			waitDispatched(t, s, s.MaxPhyOffset())
			disk := mem.Crash(100, rand.New(rand.NewSource(1)))
			_ = s.Close()
			if err := disk.Remove("/store/abort"); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			s = openStore(t, disk, cfg, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err := h.judge(s); err != nil {
				t.Errorf("checkpoint=%v later=%v: %v", checkpointed, later, err)
			}
			closeStore(t, s)
			if !strings.Contains(log.String(), "THE FILE abort IS MISSING") {
				t.Errorf("checkpoint=%v later=%v: the log says nothing:\n%s", checkpointed, later, log.String())
			}
			log.Reset()
			s = openStore(t, disk, cfg, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
			closeStore(t, s)
			if strings.Contains(log.String(), "THE FILE abort IS MISSING") {
				t.Error("a store that was closed is taken for one that was not")
			}
		}
	}
}
