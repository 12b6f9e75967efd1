package clients

// notes are lines for the log that are written when the table's lock has been left: the log may be a pipe whose reader is slow,
// and every request that looks for a client would wait for it.
type notes []func()

func (n *notes) add(line func()) { *n = append(*n, line) }

// write is deferred before the lock is taken.
func (n *notes) write() {
	for _, line := range *n {
		line()
	}
}
