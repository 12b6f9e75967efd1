package broker

import (
	"math/rand"
	"strings"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting/remotingtest"
	"rocketd/store/vfs"
)

// TestOffsetsBeyondALostEnd: three messages are consumed and the offset is saved; then the power fails and the log, which
// flushes later, has lost them. What comes after that must not be skipped.
func TestOffsetsBeyondALostEnd(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem(time.Now)
	lazy := func(c *Config) {
		c.FlushIntervalCommitLog, c.FlushCommitLogThoroughInterval = 3_600_000, 3_600_000
		c.FlushConsumerOffsetInterval = 100
	}
	commit := func(b *pathBroker, topic string, offset int64) {
		t.Helper()
		a := b.ask(protocol.UpdateConsumerOffset, &header.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: topic, CommitOffset: offset}, nil)
		check(t, "commit", a, protocol.Success, "", "{}")
	}
	b := startPathBrokerOn(t, disk, lazy)
	for range 3 {
		b.send("T", 0, "", "lost")
	}
	b.stored("T", 0, 0, 3)
	commit(b, "T", 3)
	commit(b, "Deleted", 7)
	remotingtest.Eventually(t, "the offsets are saved", func() bool {
		data, err := b.files.ReadFile("/store/config/consumerOffset.json")
		return err == nil && strings.Contains(string(data), "0:3") && strings.Contains(string(data), "0:7")
	})
	dark := disk.Crash(0, rand.New(rand.NewSource(1)))
	b.close()

	b = startPathBrokerOn(t, dark, lazy)
	if end := b.store.MaxOffset("T", 0); end != 0 {
		t.Fatalf("%d messages are left: the test shows nothing", end)
	}
	if at, known := b.offsets.Query("g", "T", 0); at != 0 || !known {
		t.Errorf("the group stands at %d, %v", at, known)
	}
	if at, _ := b.offsets.Query("g", "Deleted", 0); at != 7 {
		t.Errorf("in a topic that nobody knows it stands at %d", at)
	}
	b.send("T", 0, "", "new")
	if ms := b.stored("T", 0, 0, 1); string(ms[0].Body) != "new" {
		t.Errorf("the group gets %q", ms[0].Body)
	}

	// A clean stop leaves an offset that somebody wants beyond the end.
	commit(b, "T", 99)
	b.close()
	b = startPathBrokerOn(t, dark, lazy)
	if at, _ := b.offsets.Query("g", "T", 0); at != 99 {
		t.Errorf("after a clean stop the group stands at %d", at)
	}
}
