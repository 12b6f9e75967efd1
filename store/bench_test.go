package store

import (
	"fmt"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// benchStore is a store of official sizes on the real file system.
func benchStore(b *testing.B) *Store {
	b.Helper()
	s := openStore(b, vfs.OS, DefaultConfig(b.TempDir()), Options{Arrive: func(Arrival) {}})
	b.Cleanup(func() { closeStore(b, s) })
	return s
}

// benchRun is a run of messages of 128 bytes to four queues, as 32 sends that came together.
func benchRun(n int) []*Put {
	run := make([]*Put, n)
	for i := range run {
		p := message.AppendProperty(nil, "UNIQ_KEY", fmt.Sprintf("7F0000010E2C18B4AAC2%08X%04X", i*77777, i))
		p = message.AppendProperty(p, "CLUSTER", "DefaultCluster")
		p = message.AppendProperty(p, "TAGS", "TagA")
		run[i] = &Put{Message: &message.Message{Topic: "BenchmarkTopic", QueueId: int32(i % 4), BornHost: host, StoreHost: host,
			Body: make([]byte, 128), Properties: string(p)}}
	}
	return run
}

// BenchmarkPut is runs of 32 and their dispatch: append, queue, index.
func BenchmarkPut(b *testing.B) {
	s := benchStore(b)
	run := benchRun(32)
	b.ReportAllocs()
	messages := 0
	for b.Loop() {
		s.Put(run)
		if err := run[0].Err; err != nil {
			b.Fatal(err)
		}
		if messages += 32; messages%(1<<14) == 0 { // not further ahead than a loaded server would be
			waitDispatched(b, s, run[31].End)
		}
	}
	waitDispatched(b, s, run[31].End)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/message")
}

// BenchmarkDispatch is the dispatch of messages alone, queue and index, without reading the log.
func BenchmarkDispatch(b *testing.B) {
	for _, indexed := range []bool{true, false} {
		b.Run(fmt.Sprintf("index=%v", indexed), func(b *testing.B) {
			s := benchStore(b)
			var all []message.Record
			for i, p := range benchRun(4096) {
				p.Message.QueueOffset, p.Message.StoreTimestamp = int64(i/4), int64(i)
				all = append(all, message.Record(message.AppendRecord(nil, p.Message)))
			}
			b.ReportAllocs()
			phy, n := int64(0), 0
			for b.Loop() {
				r := all[n%len(all)]
				r.Stamp(int64(n/4), phy, 1795976475252+int64(n/1000))
				if err := s.dispatchRecord(phy, r, indexed); err != nil {
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

// BenchmarkGet is pulls of 32 messages of 128 bytes, one behind the other.
func BenchmarkGet(b *testing.B) {
	s := benchStore(b)
	for _, layout := range []struct {
		name   string
		queues int
	}{{"neighbours", 1}, {"four queues", 4}} {
		b.Run(layout.name, func(b *testing.B) {
			topic := fmt.Sprintf("Topic%d", layout.queues)
			run := benchRun(32)
			for i, p := range run {
				p.Message.Topic, p.Message.QueueId = topic, int32(i%layout.queues)
			}
			for range 1000 {
				s.Put(run)
			}
			waitDispatched(b, s, run[31].End)
			if err := s.flushDerived(1 << 20); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			offset, messages := int64(0), 0
			for b.Loop() {
				r := s.Get(topic, 0, offset, 32, nil)
				if r.Status != Found {
					b.Fatal(r)
				}
				messages += r.Count
				if offset = r.NextBeginOffset; offset == r.MaxOffset {
					offset = 0
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/message")
		})
	}
}
