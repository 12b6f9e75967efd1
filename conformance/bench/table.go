package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"rocketd/conformance/target"
)

// results holds what every round measured.
type results struct {
	values map[kind]map[string][]float64
}

func newResults() *results { return &results{map[kind]map[string][]float64{}} }

func (r *results) add(k kind, name string, value float64) {
	if !slices.ContainsFunc(metrics, func(m metric) bool { return m.name == name }) {
		panic("no line for " + name)
	}
	if r.values[k] == nil {
		r.values[k] = map[string][]float64{}
	}
	r.values[k][name] = append(r.values[k][name], value)
}

// median is NaN-free: ok is false where nothing was measured.
func (r *results) median(k kind, name string) (value float64, ok bool) {
	v := slices.Clone(r.values[k][name])
	if len(v) == 0 {
		return 0, false
	}
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2, true
	}
	return v[len(v)/2], true
}

// table is the finished report.
type table struct {
	head  string
	lines [][]string
}

var columns = []string{"measure", "unit", "official", "rocketd", "ratio", "wanted", ""}

func (r *results) table(s settings, took time.Duration) table {
	t := table{head: fmt.Sprintf("Medians of %d rounds of %s each, on %s, in %s. Official: 4.9.7 (%s).",
		s.rounds, s.phase, machine(), took.Round(time.Second), jvmOptions)}
	for _, m := range metrics {
		official, ok1 := r.median(target.Official, m.name)
		rocketd, ok2 := r.median(target.Rocketd, m.name)
		if !ok1 && !ok2 {
			continue
		}
		line := []string{m.name, m.unit, number(official, m.digits, ok1), number(rocketd, m.digits, ok2), "", "", ""}
		line[5] = m.wanted.String()
		judged, ok := rocketd, ok2
		if ok1 && ok2 && official > 0 {
			line[4] = strconv.FormatFloat(rocketd/official, 'f', 3, 64)
		}
		if !m.wanted.own {
			judged, ok = rocketd/official, ok1 && ok2 && official > 0
		}
		if ok && m.wanted != none {
			line[6] = m.wanted.verdict(judged)
		}
		t.lines = append(t.lines, line)
	}
	return t
}

// String is what stands in the table; a value of rocketd's own that is judged is named.
func (w wish) String() string {
	own := ""
	if w.own {
		own = "own "
	}
	switch {
	case w.most > 0:
		return own + "≤ " + strconv.FormatFloat(w.most, 'f', -1, 64)
	case w.least > 0:
		return own + "≥ " + strconv.FormatFloat(w.least, 'f', -1, 64)
	}
	return ""
}

func (w wish) verdict(value float64) string {
	if w.most > 0 && value > w.most || value < w.least {
		return "missed"
	}
	return "reached"
}

func number(v float64, digits int, ok bool) string {
	if !ok {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

func (t table) text() string {
	widths := make([]int, len(columns))
	for _, line := range append([][]string{columns}, t.lines...) {
		for i, c := range line {
			widths[i] = max(widths[i], len([]rune(c)))
		}
	}
	var b strings.Builder
	b.WriteString(t.head + "\n\n")
	for _, line := range append([][]string{columns}, t.lines...) {
		for i, c := range line {
			pad := strings.Repeat(" ", widths[i]-len([]rune(c)))
			if i >= 2 && i <= 4 {
				b.WriteString(pad + c + "  ")
			} else {
				b.WriteString(c + pad + "  ")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (t table) markdown() string {
	var b strings.Builder
	b.WriteString("# rocketd and the official server, side by side\n\n" + t.head + "\n\n")
	b.WriteString("| " + strings.Join(columns, " | ") + " |\n| --- | --- | ---: | ---: | ---: | --- | --- |\n")
	for _, line := range t.lines {
		b.WriteString("| " + strings.Join(line, " | ") + " |\n")
	}
	return b.String()
}

func machine() string {
	name := "a processor without a name"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for _, line := range strings.Split(string(text), "\n") {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				name = strings.TrimSpace(v)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores of %s, shared with the load", runtime.NumCPU(), name)
}
