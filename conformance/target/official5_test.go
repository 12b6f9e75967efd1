//go:build conformance

package target

import "testing"

// The official 5.x servers start, and the cases that need them find both.
func TestOfficial5(t *testing.T) {
	c := Start(t, Options{Kind: Official5})
	if err := c.Brokers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Brokers[0].Start(); err != nil {
		t.Fatalf("start after kill: %v", err)
	}
}
