package filter

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rocketd/broker/filter/sql92"
	"rocketd/protocol/body"
)

// freeLog fails when the table is locked while the log is told.
type freeLog struct {
	slog.Handler
	free func(what string)
	said []string
}

func (l *freeLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *freeLog) Handle(_ context.Context, r slog.Record) error {
	l.said = append(l.said, r.Message)
	l.free("the log is told: " + r.Message)
	return nil
}

func sql(topic, expression string, version int64) body.SubscriptionData {
	return body.SubscriptionData{Topic: topic, SubString: expression, ExpressionType: TypeSQL92, SubVersion: version}
}

// TestSlowWorkWithoutLock: neither compiles the table an expression while it is locked nor does it tell the log, whatever a heartbeat
// says; and it compiles what it needs, each once.
func TestSlowWorkWithoutLock(t *testing.T) {
	c := &clock{1_700_000_000_000}
	table := openTable(t, filepath.Join(t.TempDir(), "consumerFilter.json"), c, 32)
	free := func(what string) {
		t.Helper()
		locked := make(chan struct{})
		go func() {
			table.Find("T", "G")
			close(locked)
		}()
		select {
		case <-locked:
		case <-time.After(time.Minute):
			t.Fatal("the table is locked while " + what)
		}
	}
	l := &freeLog{Handler: slog.DiscardHandler, free: free}
	table.o.Log = slog.New(l)
	var compiled []string
	table.o.Compiled.compile = func(s string) (*sql92.Expression, error) {
		compiled = append(compiled, s)
		free("an expression is compiled: " + s)
		return sql92.Compile(s)
	}
	limit := int64(0)
	table.o.Limit = func() int64 { return limit }
	for _, step := range []struct {
		what     string
		limit    int64
		all      []body.SubscriptionData
		compiled []string
		left     string
	}{
		{"new", 0, []body.SubscriptionData{sql("T", "a=1", 1), sql("U", "b=1", 1), {Topic: "V", SubString: "*"}}, []string{"a=1", "b=1"}, "T a=1, U b=1"},
		{"the same", 0, []body.SubscriptionData{sql("T", "a=1", 1), sql("U", "b=1", 2)}, nil, "T a=1, U b=1"},
		{"an older one", 0, []body.SubscriptionData{sql("T", "a=2", 0), sql("U", "b=1", 2)}, nil, "T a=1, U b=1"},
		{"wrong", 0, []body.SubscriptionData{sql("T", "a=", 2), sql("U", "b=1", 2)}, []string{"a="}, "U b=1"},
		{"twice", 0, []body.SubscriptionData{sql("T", "a=3", 3), sql("T", "a=4", 4), sql("T", "a=3", 5)}, []string{"a=3", "a=4"}, "T a=3"},
		{"back", 0, []body.SubscriptionData{sql("T", "c=1", 6), sql("T", "a=3", 7), sql("U", "b=2", 7)}, []string{"c=1", "b=2"}, "T a=3, U b=2"},
		{"full", 10, []body.SubscriptionData{sql("T", "a=3", 7), sql("U", "b=2", 7), sql("W", "a long one=1", 7)}, nil, "T a=3, U b=2"},
		{"full but for what goes", 10, []body.SubscriptionData{sql("T", "a=", 8), sql("U", "b=2", 7), sql("X", "y=1", 8)}, []string{"y=1"}, "U b=2, X y=1"},
		{"another type", 0, []body.SubscriptionData{{Topic: "U", SubString: "x", ExpressionType: "none", SubVersion: 9}}, nil, ""},
	} {
		limit, compiled = step.limit, nil
		table.Register("G", step.all)
		slices.Sort(compiled)
		slices.Sort(step.compiled)
		if !slices.Equal(compiled, step.compiled) {
			t.Errorf("%s: compiled %q, want %q", step.what, compiled, step.compiled)
		}
		var left []string
		for _, topic := range []string{"T", "U", "V", "W", "X"} {
			if c := table.Find(topic, "G"); c != nil && !c.dead() {
				left = append(left, topic+" "+c.Expression)
			}
		}
		if got := strings.Join(left, ", "); got != step.left {
			t.Errorf("%s: %s, want %s", step.what, got, step.left)
		}
	}
	table.Unregister("G")
	c.ms += 48 * time.Hour.Milliseconds()
	table.Expire()
	slices.Sort(l.said)
	if said := slices.Compact(l.said); len(said) != 4 {
		t.Errorf("the log was told %q", said)
	}
}

// TestRegisteredAtOnce: heartbeats of one group that come at once leave what one of them says, not a mixture.
func TestRegisteredAtOnce(t *testing.T) {
	table := openTable(t, filepath.Join(t.TempDir(), "consumerFilter.json"), &clock{1_700_000_000_000}, 32)
	for round := range int64(50) {
		var wg sync.WaitGroup
		for member := range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				table.Register("G", []body.SubscriptionData{
					sql(fmt.Sprint("A", member), fmt.Sprint("a=", round), round), sql(fmt.Sprint("B", member), fmt.Sprint("b=", round), round)})
			}()
		}
		wg.Wait()
		alive := ""
		for member := range 4 {
			for _, topic := range []string{"A", "B"} {
				if c := table.Find(fmt.Sprint(topic, member), "G"); c != nil && !c.dead() {
					alive += fmt.Sprint(topic, member)
				}
			}
		}
		if len(alive) != 4 || alive[1] != alive[3] {
			t.Fatalf("alive: %s", alive)
		}
	}
}
