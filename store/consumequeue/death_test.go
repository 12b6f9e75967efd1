package consumequeue

import (
	"math/rand"
	"testing"

	"rocketd/store/vfs"
)

// Processes die, which leaves files whose names and lengths nobody has synced, and then the power fails: what a Flush has said
// to be durable since is there, in files that a dead process has made too.
func TestDeathsAndPowerCuts(t *testing.T) {
	for seed := range int64(200) {
		rng := rand.New(rand.NewSource(seed))
		mem := vfs.NewMem(nil)
		if err := vfs.MkdirAllSync(mem, "/q"); err != nil {
			t.Fatal(err)
		}
		durable, end := int64(0), int64(0)
		table := open(t, mem, false)
		for range 8 {
			for range rng.Intn(4) {
				n := int64(rng.Intn(5))
				add(t, table, 0, end, end+n)
				end += n
				pages := []int{1 << 20, 0}[rng.Intn(2)]
				if err := table.Flush(pages); err != nil {
					t.Fatal(err)
				}
				if pages == 0 {
					durable = end
				}
			}
			if rng.Intn(2) == 0 {
				mem = mem.Kill() // the log has all
			} else {
				mem = mem.Crash([]int{0, rng.Intn(101)}[rng.Intn(2)], rng)
				end = durable + rng.Int63n(end-durable+1)
			}
			table = open(t, mem, true)
			if q := table.Find("T", 0); (q == nil || q.Max() < durable) && durable > 0 {
				t.Fatalf("seed %d: %d entries are durable, there is %+v", seed, durable, q)
			}
			real := func(_ *Queue, offset int64, e Entry) bool { return offset < end && e == entry(offset) }
			if err := table.Truncate(durable*100, real); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			add(t, table, 0, durable, end)
			if end > 0 {
				expect(t, table, 0, 0, end)
			}
		}
	}
}
