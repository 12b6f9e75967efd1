package store

import (
	"fmt"
	"math/rand"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// FuzzUnits overwrites a part of an official file of consumequeue_ext, or cuts it, and starts on it, with the option on or
// off. It demands: no panic; the store opens; every message of the queue can be read; a new message gets a unit of its own, or none, and keeps it over the next start.
func FuzzUnits(f *testing.F) {
	f.Add(uint16(0), []byte{}, uint16(512), true)
	f.Add(uint16(40), make([]byte, 20), uint16(512), true)
	f.Add(uint16(20*4), []byte("\x7f\xff"), uint16(512), true)
	f.Add(uint16(20*5), []byte("\xff\xff"), uint16(512), true)
	f.Add(uint16(20*5), []byte("\x00\x13\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x00"), uint16(512), true)
	f.Add(uint16(0), []byte{}, uint16(41), true)
	f.Add(uint16(0), []byte{}, uint16(0), true)
	f.Add(uint16(3), []byte("\x01\x02\x03"), uint16(512), false)
	var disk *vfs.Mem
	f.Fuzz(func(t *testing.T, at uint16, damage []byte, size uint16, on bool) {
		if disk == nil {
			disk = unpack(t, "extended")
		}
		mem := disk.Crash(100, rand.New(rand.NewSource(1)))
		const name = "/store/consumequeue_ext/Disk/2/00000000000000000512" // of three
		from := int64(at) % 512
		overwrite(t, mem, name, from, damage[:min(int64(len(damage)), 512-from)])
		if size < 512 {
			if err := resize(mem, name, int64(size)); err != nil {
				t.Fatal(err)
			}
		}
		cfg := extendedConfig(smallConfig("/store"))
		cfg.MappedFileSizeConsumeQueueExt, cfg.EnableConsumeQueueExt = 512, on
		s := openStore(t, mem, cfg, Options{})
		end := s.MaxOffset("Disk", 2)
		put(t, s, newMessage("Disk", 2, 4711))
		for range 2 {
			for offset := s.MinOffset("Disk", 2); offset < end; offset++ {
				if got := s.Get("Disk", 2, offset, 1, nil); got.Count != 1 {
					t.Fatalf("message %d: %v", offset, got.Status)
				}
				_, _ = s.Entry("Disk", 2, offset)
			}
			got := s.Get("Disk", 2, end, 1, byTag{message.TagsCode(newMessage("Disk", 2, 4711).Properties), ""})
			if got.Count != 1 || string(message.Record(got.Body).Body()) != "body-Disk-2-4711" {
				t.Fatalf("the new message: %+v", got)
			}
			if err := unitOf(s, message.Record(got.Body)); err != nil {
				t.Fatal(err)
			}
			closeStore(t, s)
			s = openStore(t, mem, cfg, Options{})
		}
		closeStore(t, s)
	})
}

// BenchmarkDispatchUnits is the dispatch of messages to queues with consumequeue_ext, without and with a bit map.
func BenchmarkDispatchUnits(b *testing.B) {
	for _, bits := range []int{0, 8} {
		b.Run(fmt.Sprintf("bitmap=%d", bits), func(b *testing.B) {
			cfg := DefaultConfig(b.TempDir())
			cfg.EnableConsumeQueueExt = true
			bitMap := make([]byte, bits)
			s := openStore(b, vfs.OS, cfg, Options{FilterBitMap: func(dst []byte, _, _ string) []byte { return append(dst, bitMap...) }})
			b.Cleanup(func() { closeStore(b, s) })
			r := message.Record(message.AppendRecord(nil, benchRun(1)[0].Message))
			b.ReportAllocs()
			phy, n := int64(0), int64(0)
			for b.Loop() {
				r.Stamp(n, phy, 1795976475252+n/1000)
				if err := s.dispatchRecord(phy, r, false); err != nil {
					b.Fatal(err)
				}
				phy += int64(r.Size())
				n++
			}
			b.StopTimer()
			s.dispatched.Store(0)
		})
	}
}

// BenchmarkGetByUnit is pulls of 32 messages of a queue with consumequeue_ext, by tag and bit map.
func BenchmarkGetByUnit(b *testing.B) {
	cfg := DefaultConfig(b.TempDir())
	cfg.EnableConsumeQueueExt = true
	s := openStore(b, vfs.OS, cfg, Options{FilterBitMap: func(dst []byte, _, _ string) []byte { return append(dst, 1, 2, 3, 4, 5, 6, 7, 8) }})
	b.Cleanup(func() { closeStore(b, s) })
	run := benchRun(32)
	for _, p := range run {
		p.Message.QueueId = 0
	}
	for range 1000 {
		s.Put(run)
	}
	waitDispatched(b, s, run[31].End)
	if err := s.flushDerived(1 << 20); err != nil {
		b.Fatal(err)
	}
	filter := &bitFilter{bit: 1}
	b.ReportAllocs()
	offset, messages := int64(0), 0
	for b.Loop() {
		r := s.Get("BenchmarkTopic", 0, offset, 32, filter)
		if r.Status != Found {
			b.Fatal(r)
		}
		messages += r.Count
		if offset = r.NextBeginOffset; offset == r.MaxOffset {
			offset = 0
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/message")
}
