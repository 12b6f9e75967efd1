package store

import (
	"fmt"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// benchmarkOpen measures opening the store that fill leaves in a folder; killed: as after kill -9, else as after a stop. Each
// pass opens the same store: what Open changes is small beside what it reads.
func benchmarkOpen(b *testing.B, killed bool, fill func(s *Store)) {
	b.Helper()
	cfg := DefaultConfig(b.TempDir())
	s := openStore(b, vfs.OS, cfg, Options{})
	fill(s)
	waitDispatched(b, s, s.MaxPhyOffset())
	closeStore(b, s)
	b.ResetTimer()
	for b.Loop() {
		if killed {
			if err := s.writeAbort(); err != nil {
				b.Fatal(err)
			}
		}
		opened, err := Open(cfg, Options{FS: vfs.OS})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		opened.Start()
		closeStore(b, opened)
		b.StartTimer()
	}
}

// BenchmarkOpen is the start of a store whose checkpoint is behind the last record, by the number of queues.
func BenchmarkOpen(b *testing.B) {
	for _, queues := range []int{4, 1000, 10_000} {
		for _, killed := range []bool{false, true} {
			b.Run(fmt.Sprintf("queues=%d/killed=%v", queues, killed), func(b *testing.B) {
				benchmarkOpen(b, killed, func(s *Store) {
					for n := 0; n < queues; n += 4 {
						run := make([]*Put, 4)
						for i := range run {
							run[i] = &Put{Message: newMessage(fmt.Sprintf("topic%d", n/4), int32(i), n)}
						}
						s.Put(run)
					}
				})
			})
		}
	}
}

// BenchmarkRecover is what recovery does to each record behind the checkpoint: read it, check it, and dispatch it again.
func BenchmarkRecover(b *testing.B) {
	for _, body := range []int{128, 4 << 10} {
		b.Run(fmt.Sprintf("body=%d", body), func(b *testing.B) {
			const bytes = 64 << 20
			cfg := DefaultConfig(b.TempDir())
			s := openStore(b, vfs.OS, cfg, Options{})
			records := 0
			for s.MaxPhyOffset() < bytes {
				run := benchRun(32)
				for _, p := range run {
					p.Message.Body = make([]byte, body)
				}
				s.Put(run)
				records += len(run)
			}
			waitDispatched(b, s, s.MaxPhyOffset())
			closeStore(b, s)
			b.SetBytes(s.MaxPhyOffset())
			for b.Loop() {
				n := 0
				o, err := Open(cfg, Options{FS: vfs.OS})
				if err != nil {
					b.Fatal(err)
				}
				o.log.NotStopped()
				if err := o.log.Recover(0, true, func(phyOffset int64, r message.Record) error {
					n++
					return o.dispatchRecord(phyOffset, r, false)
				}); err != nil || n != records {
					b.Fatal(n, err)
				}
				b.StopTimer()
				o.Start()
				closeStore(b, o)
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*records), "ns/record")
		})
	}
}
