//go:build conformance

package crash

import (
	"context"
	"fmt"
	"maps"
	"os"
	"testing"
	"time"

	"rocketd/conformance/target"
)

// kindRun is a run of one kind of messages that ends with a verdict.
type kindRun func(ctx context.Context, b *target.Broker, s Settings) (*Verdict, error)

// kindKills are the SIGKILLs of one kind in all: in the short form, in the long form, and those of an official server there.
const kindKills, kindKillsLong, kindKillsOfficial = 4, 100, 16

// kindModes are the settings of the runs of one kind, in which half of the stores have small files and half sync flush.
func kindModes(kind target.Kind) (all []Settings) {
	long, total := os.Getenv("CONFORMANCE_LONG") != "", *kills
	switch {
	case total > 0:
	case !long:
		total = kindKills
	case kind == target.Rocketd:
		total = kindKillsLong
	default:
		total = kindKillsOfficial
	}
	modes := modes(kind, long)[:2] // small files
	if !long {
		modes = modes[:1]
	}
	for i, s := range modes {
		s.Life = [2]time.Duration{300 * time.Millisecond, 1500 * time.Millisecond}
		if kind != target.Rocketd {
			s.Life[1], s.Start = 3*time.Second, 5*time.Second
		}
		for left := (total + len(modes) - 1 - i) / len(modes); left > 0; left -= s.Kills {
			s.Kills, s.Seed = min(left, killsInStore), *random
			*random++
			all = append(all, s)
		}
	}
	return all
}

// runKind runs all modes of a kind, one store after the other, and returns a row for each mode. allowed are the rules that
// the official server breaks.
func runKind(t *testing.T, kind target.Kind, conf map[string]string, allowed map[Rule]bool, run kindRun) []*Row {
	t.Helper()
	if *random == 0 {
		*random = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", *random)
	var rows []*Row
	for i, s := range kindModes(kind) {
		if len(rows) == 0 || rows[len(rows)-1].Name != s.Name() {
			rows = append(rows, &Row{Kind: kind, Name: s.Name()})
		}
		row := rows[len(rows)-1]
		t.Run(fmt.Sprintf("%s %d", s.Name(), i), func(t *testing.T) {
			all := s.Conf()
			maps.Copy(all, conf)
			c := target.Start(t, target.Options{Kind: kind, Brokers: []target.BrokerOptions{{Conf: all}}})
			began := time.Now()
			v, err := run(t.Context(), c.Brokers[0], s)
			if err != nil {
				t.Fatal(err)
			}
			row.Add(v, time.Since(began))
			for _, f := range v.Figures {
				t.Logf("%s: %d", f.Name, f.N)
			}
			for _, f := range v.Cases {
				if kind != target.Rocketd && allowed[f.Rule] {
					t.Logf("the official server: %s: %s", f.Rule, f.Text)
					continue
				}
				t.Errorf("%s: %s", f.Rule, f.Text)
			}
		})
	}
	text := KindMarkdown(rows)
	t.Log("\n" + text)
	if *report != "" {
		f, err := os.OpenFile(*report, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString("\n" + text); err != nil {
			t.Error(err)
		}
	}
	return rows
}

// figure is the sum of a figure over all rows.
func figure(rows []*Row, name string) (n int) {
	for _, r := range rows {
		for _, f := range r.Figures {
			if f.Name == name {
				n += f.N
			}
		}
	}
	return n
}

// knownOfTransactions are the rules that the official server breaks: a kill takes the places of its checks back, and what
// lies behind them is stored again, copies too, and asked about, though it may have ended.
var knownOfTransactions = map[Rule]bool{AskedAgain: true, Doubled: true}

// TestCrashTransactions kills the broker among transactions in every state.
func TestCrashTransactions(t *testing.T) {
	kind, err := target.Selected()
	if err != nil {
		t.Fatal(err)
	}
	rows := runKind(t, kind, transactionConf, knownOfTransactions, func(ctx context.Context, b *target.Broker, s Settings) (*Verdict, error) {
		h, err := RunTransactions(ctx, b, s)
		if err != nil {
			return nil, err
		}
		return CheckTransactions(h), nil
	})
	for _, name := range []string{"half messages acknowledged", "ends acknowledged", "checks", "open transactions", "messages"} {
		if figure(rows, name) == 0 {
			t.Errorf("%s: none, so nothing is proved", name)
		}
	}
}

// knownOfPops are the rules that the official server breaks after a kill, which takes its consumer offsets back, and that of its
// checkpoints with them. Some of what was popped then may never come again, in three minutes at least: 7 of 42,244 messages in one
// run of several.
var knownOfPops = map[Rule]bool{AckedAgain: true, TooEarly: true, CopiedTwice: true, Unconsumed: true}

// TestCrashPops kills the broker among popped messages; the official server is 5.3.3.
func TestCrashPops(t *testing.T) {
	kind, err := target.Selected5()
	if err != nil {
		t.Fatal(err)
	}
	rows := runKind(t, kind, nil, knownOfPops, func(ctx context.Context, b *target.Broker, s Settings) (*Verdict, error) {
		h, err := RunPops(ctx, b, s)
		if err != nil {
			return nil, err
		}
		return CheckPops(h, kind != target.Rocketd), nil
	})
	for _, name := range []string{"consumed", "of these again", "acknowledgements", "changes of the invisible time", "kills met: messages under way"} {
		if figure(rows, name) == 0 {
			t.Errorf("%s: none, so nothing is proved", name)
		}
	}
}

// TestCrashTimers kills the broker among messages for a time of their own.
func TestCrashTimers(t *testing.T) {
	kind, err := target.Selected5()
	if err != nil {
		t.Fatal(err)
	}
	if kind != target.Rocketd {
		t.Skip("official: 5.3.3 delivers messages again and again after a kill, recalled ones too (2000 of 12000 in 4 kills); conformance/timer has what it keeps")
	}
	rows := runKind(t, kind, nil, nil, func(ctx context.Context, b *target.Broker, s Settings) (*Verdict, error) {
		h, err := RunTimers(ctx, b, s)
		if err != nil {
			return nil, err
		}
		return CheckTimers(h), nil
	})
	for _, name := range []string{"accepted", "recalled", "deliveries", "kills met: messages that wait"} {
		if figure(rows, name) == 0 {
			t.Errorf("%s: none, so nothing is proved", name)
		}
	}
}
