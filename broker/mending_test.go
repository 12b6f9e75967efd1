package broker

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/remoting/remotingtest"
	"rocketd/store/vfs"
)

// TestPullOfDamagedEntry: at an entry that is damaged a pull gets what is before it, then nothing, and the same place again, held if it
// may be, until the entry is mended. No message is passed over.
func TestPullOfDamagedEntry(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem(time.Now)
	disk := vfs.NewFault(mem, nil)
	b := startPathBrokerOn(t, disk, func(c *Config) {
		c.LongPollingEnable, c.ShortPollingTimeMills, c.FlushIntervalConsumeQueue = false, 20, 10
	})
	b.send("T", 0, "", "0")
	b.send("T", 0, "", "1")
	b.send("T", 0, "", "2")
	b.stored("T", 0, 0, 3)
	const name = "/store/consumequeue/T/0/00000000000000000000"
	entries := func() []byte {
		f, err := mem.OpenRead(name)
		if err != nil {
			return make([]byte, 60)
		}
		defer f.Close()
		buf := make([]byte, 60)
		if _, err := f.ReadAt(buf, 0); err != nil {
			t.Fatal(err)
		}
		return buf
	}
	remotingtest.Eventually(t, "the entries are in the file", func() bool { return entries()[40+11] != 0 })
	whole := entries()
	disk.SetInject(func(o vfs.Op) error {
		if o.Kind == vfs.OpWrite && strings.Contains(o.Name, "consumequeue/T/0") {
			return syscall.EIO
		}
		return nil
	})
	f, err := mem.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, 20), 20); err != nil {
		t.Fatal(err)
	}
	a := b.ask(protocol.PullMessage, pullHeader("T", 0, 0), nil)
	check(t, "before it", a, protocol.Success, "FOUND", pullFields...)
	if ms := b.messages(a); len(ms) != 1 || string(ms[0].Body) != "0" || field(t, a, "nextBeginOffset") != "1" {
		t.Errorf("%d messages, %v", len(ms), a.Fields)
	}
	for _, millis := range []int64{0, 60_000} {
		h := pullHeader("T", 0, 1)
		if millis > 0 {
			h = held("T", 0, 1, millis)
		}
		a = b.ask(protocol.PullMessage, h, nil)
		check(t, "at it", a, protocol.PullNotFound, "OFFSET_FOUND_NULL", pullFields...)
		if field(t, a, "nextBeginOffset") != "1" || field(t, a, "maxOffset") != "3" {
			t.Errorf("%v", a.Fields)
		}
	}
	disk.SetInject(nil)
	remotingtest.Eventually(t, "it is mended", func() bool {
		a = b.ask(protocol.PullMessage, held("T", 0, 1, 60_000), nil)
		return a.Code == int32(protocol.Success)
	})
	if ms := b.messages(a); len(ms) != 2 || string(ms[0].Body) != "1" || string(ms[1].Body) != "2" {
		t.Errorf("%d messages, %v", len(ms), a.Fields)
	}
	if !bytes.Equal(entries(), whole) {
		t.Error("the file is not as it was")
	}
}
