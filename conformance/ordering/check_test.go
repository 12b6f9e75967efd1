package ordering

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

// TestCheck: histories made by hand, and the fault that each has; "" none.
func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, history, fault string }{
		{"in order", "M a q 0 k 0\nM a q 1 k 1\nE a q\nM a q 2 k 2\nE a q\n", ""},
		{"two keys", "M a q 0 k 0\nM a q 1 j 0\nM a q 2 k 1\nM a q 3 k 2\nE a q\n", ""},
		{"another member goes on", "M a q 0 k 0\nE a q\nM b q 1 k 1\nM b q 2 k 2\n", ""},
		{"another member goes back", "M a q 0 k 0\nM a q 1 k 1\nE a q\nM b q 0 k 0\nM b q 1 k 1\nM b q 2 k 2\n", ""},
		{"killed in the middle", "M a q 0 k 0\nM a q 1 k 1\nK a\nM b q 1 k 1\nM b q 2 k 2\n", ""},
		{"read again after a disturbance", "M a q 0 k 0\nM a q 1 k 1\nE a q\nD broker\nM a q 0 k 0\nM a q 1 k 1\nM a q 2 k 2\n", ""},
		{"a send repeated", "M a q 0 k 0\nM a q 1 k 1\nM a q 2 k 1\nM a q 3 k 2\n", ""},
		{"cut off", "M a q 0 k 0\nM a q 1 k 1\nM a q 2 k 2\nM a q 3", ""},

		{"swapped in the queue", "M a q 0 k 0\nM a q 2 k 2\nM a q 1 k 1\n", "q has offset 2 after 0"},
		{"swapped by the sender", "M a q 0 k 0\nM a q 1 k 2\nM a q 2 k 1\n", "message 2 of key k comes before 1"},
		{"lost", "M a q 0 k 0\nM a q 1 k 1\n", "2 messages of key k, want 3"},
		{"lost at the head", "M a q 1 k 0\nM a q 2 k 1\nM a q 3 k 2\n", "q has offset 1 after -1"},
		{"back for no reason", "M a q 0 k 0\nM a q 1 k 1\nE a q\nM a q 1 k 1\nM a q 2 k 2\n", "q goes back from offset 1 to 1 for no reason"},
		{"back twice for one reason", "D x\nM a q 0 k 0\nM a q 0 k 0\nM a q 1 k 1\nM a q 2 k 2\n", "goes back from offset 0 to 0"},
		{"two members by turns", "M a q 0 k 0\nM a q 1 k 1\nE a q\nM b q 0 k 0\nE b q\nM a q 2 k 2\n", "q has offset 2 after 0"},
		{"two members at once", "M a q 0 k 0\nM b q 1 k 1\nE a q\nM b q 2 k 2\n", "b begins with offset 1 of q, of which a has not ended 0"},
		{"from the grave", "M a q 0 k 0\nK a\nM a q 1 k 1\nM a q 2 k 2\n", "a is dead and consumes offset 1"},
		{"in the other queue", "M a q 0 k 0\nM a p 0 k 2\nM a q 1 k 1\n", "message 2 of key k comes before 1"},
	} {
		events, err := Read(strings.NewReader(c.history))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		want := map[string]int64{"k": 3}
		if strings.Contains(c.history, " j ") {
			want["j"] = 1
		}
		v := Check(events, want)
		if c.fault == "" && v.Count > 0 || c.fault != "" && !strings.Contains(strings.Join(v.Faults, "\n"), c.fault) {
			t.Errorf("%s: %q, want %q", c.name, v.Faults, c.fault)
		}
		if c.fault == "" && v.Messages < 3 {
			t.Errorf("%s: %d messages", c.name, v.Messages)
		}
	}
}

// TestEverySwapIsFound: in a right history of two members any two neighbours of one queue are swapped.
func TestEverySwapIsFound(t *testing.T) {
	var right []Event
	rng := rand.New(rand.NewSource(1))
	want := map[string]int64{}
	for offset := range int64(200) {
		for q, member := range []string{"a", "b"} {
			key := fmt.Sprint("k", q, rng.Intn(3))
			right = append(right, Event{Kind: Consumed, Member: member, Queue: fmt.Sprint("q", q), Offset: offset, Key: key, Seq: want[key]})
			want[key]++
		}
	}
	if v := Check(right, want); v.Count > 0 || v.Messages != len(right) {
		t.Fatalf("the right history: %+v", v)
	}
	for i := range len(right) - 2 {
		wrong := append([]Event(nil), right...)
		wrong[i], wrong[i+2] = wrong[i+2], wrong[i] // of the same queue
		if v := Check(wrong, want); v.Count == 0 {
			t.Fatalf("a swap of events %d and %d is not found", i, i+2)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, line := range []string{"", "X a", "M a q x k 0", "M a q 0", "E a", "K"} {
		if e, err := Read(strings.NewReader(line + "\n")); err == nil {
			t.Errorf("%q: %v", line, e)
		}
	}
}
