package compat

// Notes are lines for the log that are written when a table's lock has been left: the log may be a pipe whose reader is slow, and
// every request that looks into the table would wait for it. The zero value has none; one goroutine uses it.
type Notes []func()

// Add notes what writes a line.
func (n *Notes) Add(line func()) { *n = append(*n, line) }

// Write writes the lines. It is deferred before the lock is taken.
func (n *Notes) Write() {
	for _, line := range *n {
		line()
	}
}
