package main

import (
	"os"
	"runtime/debug"
)

// gcPercent makes the collector run when the heap has grown by half. The heap is small, for messages live in the
// page cache, so it is cheap; it keeps resident memory low.
const gcPercent = 50

// footprint sets up the Go runtime for a small footprint, unless the environment says otherwise.
func footprint() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
