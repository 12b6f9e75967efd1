package commitlog

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// fixedOffsets gives out queue offsets without a table, so that the log alone is measured.
type fixedOffsets struct{ next int64 }

func (o *fixedOffsets) Take(_ string, _ int32, n int) int64 {
	o.next += int64(n)
	return o.next - int64(n)
}
func (o *fixedOffsets) Untake(_ string, _ int32, n int) { o.next -= int64(n) }

func benchmarkLog(b *testing.B, changes ...setup) *Log {
	o := options(append([]setup{on(vfs.OS, b.TempDir()), func(o *Options) {
		o.FileSize, o.HotWindow, o.QueueOffsets = 1<<30, 256<<20, &fixedOffsets{}
		o.FlushIntervalCommitLog, o.FlushCommitLogThoroughInterval = 500, 10_000
	}}, changes...)...)
	return started(b, o)
}

// typical is a message of 128 bytes as the Java client sends it.
func typical() *message.Message {
	m := msg(1, "", 128)
	m.Properties = "KEYS\x01k1 k2\x02UNIQ_KEY\x01FD0000000000000000000000000000026C654E0E2F2A9440B3D800FF\x02CLUSTER\x01DefaultCluster\x02TAGS\x01TagA"
	return m
}

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 16, 32} {
		b.Run(fmt.Sprintf("run%d", n), func(b *testing.B) {
			l := benchmarkLog(b)
			run := make([]*Put, n)
			for i := range run {
				run[i] = put(typical())
			}
			b.ReportAllocs()
			b.SetBytes(int64(message.RecordSize(run[0].Message) * n))
			for b.Loop() {
				l.Append(run)
				if run[0].Err != nil {
					b.Fatal(run[0].Err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/message")
		})
	}
}

func BenchmarkAppendParallel16(b *testing.B) {
	l := benchmarkLog(b)
	b.RunParallel(func(pb *testing.PB) {
		run := make([]*Put, 16)
		for i := range run {
			run[i] = put(typical())
		}
		for pb.Next() {
			l.Append(run)
		}
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*16), "ns/message")
}

func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		name string
		hot  int64
	}{{"hot", 1 << 30}, {"cold", 0}} {
		b.Run(c.name, func(b *testing.B) {
			l := benchmarkLog(b, func(o *Options) { o.HotWindow = c.hot })
			p := put(typical())
			for range 1000 {
				mustAppend(b, l, p)
			}
			buf := make([]byte, 0, 1024)
			b.ReportAllocs()
			at := int64(0)
			for b.Loop() {
				var err error
				if buf, err = l.Read(buf[:0], at, int(p.Size)); err != nil {
					b.Fatal(err)
				}
				if at += int64(p.Size); at == l.MaxOffset() {
					at = 0
				}
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	l := benchmarkLog(b)
	run := make([]*Put, 1000)
	for i := range run {
		run[i] = put(typical())
	}
	mustAppend(b, l, run...)
	for b.Loop() {
		if _, err := l.Scan(0, func(int64, message.Record) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*1000), "ns/message")
}

// One message after the other, each durable before the next: the cost is one fdatasync.
func BenchmarkSyncFlush(b *testing.B) {
	l := benchmarkLog(b, syncFlush)
	p := put(typical())
	for b.Loop() {
		mustAppend(b, l, p)
		done := make(chan error)
		l.WaitFlushed(p.End, time.Minute, func(err error) { done <- err })
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// Connections that each send a run of 32 and wait until all are durable: one sync serves those who came meanwhile.
func BenchmarkGroupCommit(b *testing.B) {
	l := benchmarkLog(b, syncFlush, func(o *Options) { o.FileSize = 1 << 30 })
	b.SetParallelism(32) // times GOMAXPROCS
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		run := make([]*Put, 32)
		for i := range run {
			m := typical()
			m.Body = make([]byte, 1024)
			run[i] = put(m)
		}
		var answers sync.WaitGroup
		done := func(err error) {
			if err != nil {
				b.Error(err)
			}
			answers.Done()
		}
		for pb.Next() {
			l.Append(run)
			answers.Add(len(run))
			for _, p := range run {
				l.WaitFlushed(p.End, time.Minute, done)
			}
			answers.Wait()
		}
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*32), "ns/message")
}

func BenchmarkRecover(b *testing.B) {
	o := options(on(vfs.OS, b.TempDir()), func(o *Options) { o.FileSize = 1 << 30 })
	l := started(b, o)
	run := make([]*Put, 1000)
	for i := range run {
		run[i] = put(typical())
	}
	for range 100 {
		mustAppend(b, l, run...)
	}
	size := l.MaxOffset()
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		l, err := Open(o)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Recover(0, true, func(int64, message.Record) error { return nil }); err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}
