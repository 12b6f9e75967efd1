//go:build !race

package commitlog

import (
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// Appending makes no garbage; reading none but the room that the caller gives.
func TestAllocations(t *testing.T) {
	l := started(t, options(on(vfs.OS, t.TempDir()), func(o *Options) { o.FileSize, o.QueueOffsets = 64<<20, &fixedOffsets{} }))
	run := make([]*Put, 16)
	for i := range run {
		run[i] = put(typical())
	}
	l.Append(run)
	buf := make([]byte, 0, 1024)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"Append", func() { l.Append(run) }},
		{"Read", func() { buf, _ = l.Read(buf[:0], 0, int(run[0].Size)) }},
		{"Scan", func() { l.Scan(0, func(int64, message.Record) error { return nil }) }},
	} {
		if n := testing.AllocsPerRun(100, c.f); n >= 1 {
			t.Errorf("%s allocates %v times", c.name, n)
		}
	}
}
