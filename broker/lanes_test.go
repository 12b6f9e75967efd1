package broker

import (
	"runtime"
	"testing"
)

// Whoever asks for tables never takes all processors, whatever is configured.
func TestScanWorkers(t *testing.T) {
	for _, c := range []struct{ procs, configured, want int }{
		{1, 16, 1}, {2, 16, 1}, {3, 16, 1}, {4, 16, 2}, {64, 16, 16}, {64, 100, 32}, {8, 1, 1}, {8, 0, 1}, {8, -3, 1},
	} {
		before := runtime.GOMAXPROCS(c.procs)
		got := scanWorkers(&Config{AdminBrokerThreadPoolNums: c.configured})
		runtime.GOMAXPROCS(before)
		if got != c.want {
			t.Errorf("%d processors, adminBrokerThreadPoolNums=%d: %d workers, want %d", c.procs, c.configured, got, c.want)
		}
	}
}
