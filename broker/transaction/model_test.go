package transaction

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestModel: whatever the order in which half messages come and end, with restarts, kills that take the places back, and
// room for few ops, nobody is asked about a transaction that has ended, and about each that has not once in each round, until
// it is given up.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t)
		now := time.Unix(1_700_000_000, 0)
		f.start, f.now = now, func() time.Time { return now }
		f.s.CheckMax = 3
		bound := rapid.IntRange(1, 4).Draw(t, "listBound")
		open := func() {
			f.open()
			f.checks.listBound = bound
		}
		open()
		offset := map[string]int64{} // of a copy that its producer knows
		checks := map[string]int{}
		ended := map[string]bool{}
		var bodies []string
		saved := map[string]int64{}
		t.Repeat(map[string]func(*rapid.T){
			"half": func(t *rapid.T) {
				body := fmt.Sprint(len(bodies))
				bodies = append(bodies, body)
				offset[body] = f.half(body)
			},
			"end": func(t *rapid.T) {
				if len(bodies) == 0 {
					t.Skip("there is none")
				}
				body := rapid.SampledFrom(bodies).Draw(t, "which")
				f.op(offset[body])
				ended[body] = true
			},
			"restart": func(*rapid.T) { open() },
			"save":    func(*rapid.T) { saved = maps.Clone(f.places) },
			"kill": func(*rapid.T) { // what was told to the table of offsets since it was saved is gone
				f.places = maps.Clone(saved)
				open()
			},
			"round": func(t *rapid.T) {
				now = now.Add(10 * time.Second)
				f.asked = nil
				f.checks.round()
				seen := map[string]bool{}
				for _, a := range f.asked {
					body := string(a.m.Body)
					if ended[body] || seen[body] {
						t.Fatalf("asked about %s, which has ended: %v, or was asked about already: %v", body, ended[body], seen[body])
					}
					seen[body], offset[body] = true, a.h.TranStateTableOffset
					checks[body]++
				}
				for _, body := range bodies {
					if !ended[body] && !seen[body] {
						if checks[body] != 3 {
							t.Fatalf("%s is forgotten after %d checks", body, checks[body])
						}
						ended[body] = true // given up
					}
				}
				if len(f.checks.ops.list) > bound || len(f.checks.resolved.words) > 2 {
					t.Fatalf("%d ops and %d words are held", len(f.checks.ops.list), len(f.checks.resolved.words))
				}
				if end := f.store.MaxOffset(topics[1], 0); f.checks.ops.place != end || f.checks.half > f.store.MaxOffset(topics[0], 0) {
					t.Fatalf("all ops are passed but those from %d to %d", f.checks.ops.place, end)
				}
			},
		})
	})
}

// TestManyOpenHalves: what 100,000 open half messages cost in memory from round to round.
func TestManyOpenHalves(t *testing.T) {
	open := int64(100_000)
	if raceOn {
		open /= 10
	}
	f := newFixture(t)
	now := time.Unix(1_700_000_000, 0)
	f.start, f.now = now, func() time.Time { return now }
	f.open()
	for range open {
		f.half("x")
	}
	for range 2 {
		now = now.Add(time.Minute)
		f.asked = nil
		f.checks.round()
		if int64(len(f.asked)) != open {
			t.Fatalf("%d checks", len(f.asked))
		}
	}
	if c := f.checks; int64(len(c.moved)) > 2*open || len(c.batch) > runCount || cap(c.puts) > 2*runCount || len(c.resolved.words) > 1 {
		t.Errorf("%d moves, %d steps, %d words are held", len(c.moved), len(c.batch), len(c.resolved.words))
	}
	for i := range open {
		f.op(2*open + i)
	}
	now = now.Add(time.Minute)
	f.asked = nil
	f.checks.round()
	f.checks.round()
	if c := f.checks; len(f.asked) != 0 || c.half != 3*open || c.ops.place != open || len(c.moved) != 0 || c.ops.list != nil || len(c.resolved.words) > 1 {
		t.Errorf("after all have ended: %d checks, place %d, ops %d, %d moves, %d words", len(f.asked), c.half, c.ops.place, len(c.moved), len(c.resolved.words))
	}
}

func BenchmarkRoundOfOps(b *testing.B) {
	f := newFixture(b)
	now := time.Unix(1_700_000_000, 0)
	f.now = func() time.Time { return now }
	f.open()
	for i := range b.N {
		f.half("x")
		f.op(int64(i))
	}
	now = now.Add(time.Minute)
	b.ReportAllocs()
	b.ResetTimer()
	f.checks.round()
}
