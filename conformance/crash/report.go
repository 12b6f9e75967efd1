package crash

import (
	"fmt"
	"strings"
	"time"

	"rocketd/conformance/target"
)

// Row is the result of the runs of one kind.
type Row struct {
	Kind   target.Kind
	Name   string // of the settings
	Stores int    // runs, each on a store of its own
	Took   time.Duration
	Counts Counts
	Broken map[Rule]int
	Cases  []Violation
}

// Add adds the verdict of one more run.
func (r *Row) Add(v *Verdict, took time.Duration) {
	if r.Broken == nil {
		r.Broken = map[Rule]int{}
	}
	r.Stores++
	r.Took += took
	r.Counts.Add(v.Counts)
	for rule, n := range v.Broken {
		r.Broken[rule] += n
	}
	r.Cases = append(r.Cases, v.Cases...)
}

// Markdown is the rows as two tables, what was done and what was found, and the first cases of each broken promise.
func Markdown(rows []*Row) string {
	var b strings.Builder
	b.WriteString("| server | mode | kills (in a start) | time | sent | acknowledged | no answer (of these stored) | flush timeout | refused | delayed (delivered again) | records pulled | at the end |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		c := &r.Counts
		fmt.Fprintf(&b, "| %s | %s | %d (%d) | %s | %d | %d | %d (%d) | %d | %d | %d (%d) | %d | %d |\n", r.Kind, r.Name, c.Kills, c.KillsInStart,
			r.Took.Round(time.Second), c.Attempts, c.Acknowledged, c.Unanswered, c.StoredUnanswered, c.Uncertain, c.Refused, c.Delayed, c.CopiesAgain,
			c.Records, c.FinalTotal)
	}
	b.WriteString("\n| server | mode | lost | duplicated | wrong | other rules | committed offset back (of) | not found by key or id (of) |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		c, n := &r.Counts, r.Broken
		duplicated, wrong := n[Twice]+n[CopiedAgain], n[Wrong]+n[Changed]+n[Phantom]+n[RefusedStored]
		other := -n[Lost] - duplicated - wrong - n[Unfound]
		for _, k := range n {
			other += k
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d (%d) | %d (%d) |\n", r.Kind, r.Name, n[Lost], duplicated, wrong, other, c.CommitsBack, c.Standings,
			n[Unfound], c.Lookups)
	}
	for _, r := range rows {
		for _, rule := range Rules {
			if k := r.Broken[rule]; k > 0 {
				fmt.Fprintf(&b, "\n%s, %s: %s, %d times:\n\n", r.Kind, r.Name, rule, k)
				for _, c := range r.Cases {
					if c.Rule == rule {
						fmt.Fprintf(&b, "- %s\n", c.Text)
					}
				}
			}
		}
	}
	return b.String()
}
