// Package crash kills a loaded broker with SIGKILL at random moments, again and again on one store, and judges by the
// history of everything that its clients have seen whether a promise was broken:
//
//   - what was acknowledged can be consumed, with its content, at the queue offset and message id of the
//     acknowledgement;
//   - one offset has one value, before and after every crash;
//   - queue offsets have no gap and there is none beyond the data; a queue's end never goes back;
//   - one send is stored once at most, a refused one never, and nothing is there that nobody sent;
//   - what was sent after the acknowledgement of another message of its queue stands behind that;
//   - a delayed message is delivered at least once, not before its time, and again only after a crash;
//   - a committed consumer offset is one that was committed, and not beyond the end of its queue.
//
// Producers (several connections, pipelined, both header forms, batches, delayed messages, empty and large bodies, new
// topics), pullers (polling and long polling) and committers of offsets speak raw frames. The load goes on while the
// broker is down: who gets no answer sends the message again, as another attempt with a name of its own, so that each
// record says which attempt it is.
//
// Transactions, pops and messages with a time of their own have runs and rules of their own: CheckTransactions, CheckPops and
// CheckTimers list the promises. The official server for pops is 5.3.3.
//
// Kill -9 leaves the page cache alone, so these runs show what a death of the process costs. What a power failure costs
// is shown by the tests of package store on a file system in memory that forgets what was not synced.
//
// The history is checked directly and not by a search for a linearization: an acknowledgement and a pull both name the
// queue offset, so the order of all operations on a queue is known, and each rule is a comparison along it.
//
//	go test -tags conformance ./conformance/crash                            10 kills, and 4 of each other kind
//	CONFORMANCE_LONG=1 go test -timeout 60m -tags conformance ./conformance/crash
//	                                                                         208 kills, and 100 of each other kind; 64 and 16 of an official server
//	… -args -kills 400 -report FILE -seed 7                                  more kills, the result as a table
//
// CONFORMANCE_TARGET=official does the same to the official server. The rules have tests of their own, with histories made
// by hand, that need neither a server nor the build tag.
package crash
