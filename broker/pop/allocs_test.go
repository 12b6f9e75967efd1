package pop

import (
	"testing"
	"time"
)

// What every message passes, and every acknowledgement, makes no garbage.
func TestAllocations(t *testing.T) {
	h := NewHolder(HolderOptions{Clock: time.Now, Limits: func() (int, int) { return 9, 9 }})
	handle := "3 1795977912869 8000 5 1 pop-a 0 4"
	for name, f := range map[string]func(){
		"arrival that nobody waits for": func() { h.Arrive("T", 0, 5, "") },
		"handle":                        func() { _, _ = ParseHandle(handle) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkArrive(b *testing.B) {
	h := NewHolder(HolderOptions{Clock: time.Now, Limits: func() (int, int) { return 1 << 20, 1 << 20 }})
	for range 1000 {
		h.Hold(&Held{Key: Key{"other", "G", -1}, Retry: RetryTopic("G", "other"), Deadline: time.Now().Add(time.Hour).UnixMilli()})
	}
	b.ReportAllocs()
	for b.Loop() {
		h.Arrive("T", 0, 5, "")
	}
}
