package wiretest

import (
	"testing"
	"time"
)

// Until waits for a condition, and ends the test when that takes longer than patience.
func Until(tb testing.TB, patience time.Duration, what string, condition func() bool) {
	tb.Helper()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-every.C {
		if time.Now().After(deadline) {
			tb.Fatalf("after %s still not: %s", patience, what)
		}
	}
}
