package crash

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rocketd/conformance/target"
)

// Row is the result of the runs of one kind.
type Row struct {
	Kind    target.Kind
	Name    string // of the settings
	Stores  int    // runs, each on a store of its own
	Took    time.Duration
	Counts  Counts
	Figures []Figure
	Broken  map[Rule]int
	Cases   []Violation
}

// Add adds the verdict of one more run.
func (r *Row) Add(v *Verdict, took time.Duration) {
	if r.Broken == nil {
		r.Broken = map[Rule]int{}
	}
	r.Stores++
	r.Took += took
	r.Counts.Add(v.Counts)
	for i, f := range v.Figures {
		if i == len(r.Figures) {
			r.Figures = append(r.Figures, Figure{Name: f.Name})
		}
		r.Figures[i].N += f.N
	}
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
	cases(&b, rows)
	return b.String()
}

// KindMarkdown is the rows of one kind of messages as a table, and the first cases of each broken promise.
func KindMarkdown(rows []*Row) string {
	var b strings.Builder
	for i, r := range rows {
		if i == 0 {
			b.WriteString("| server | mode | kills (in a start) | time |")
			for _, f := range r.Figures {
				b.WriteString(" " + f.Name + " |")
			}
			b.WriteString(" promises broken |\n|" + strings.Repeat("---|", 5+len(r.Figures)) + "\n")
		}
		fmt.Fprintf(&b, "| %s | %s | %d (%d) | %s |", r.Kind, r.Name, r.Counts.Kills, r.Counts.KillsInStart, r.Took.Round(time.Second))
		for _, f := range r.Figures {
			fmt.Fprintf(&b, " %d |", f.N)
		}
		faults := 0
		for _, n := range r.Broken {
			faults += n
		}
		fmt.Fprintf(&b, " %d |\n", faults)
	}
	cases(&b, rows)
	return b.String()
}

// cases adds the first cases of each broken promise.
func cases(b *strings.Builder, rows []*Row) {
	for _, r := range rows {
		for _, rule := range slices.Concat(Rules, TransactionRules, PopRules, TimerRules) {
			if k := r.Broken[rule]; k > 0 {
				fmt.Fprintf(b, "\n%s, %s: %s, %d times:\n\n", r.Kind, r.Name, rule, k)
				for _, c := range r.Cases {
					if c.Rule == rule {
						fmt.Fprintf(b, "- %s\n", c.Text)
					}
				}
			}
		}
	}
}
