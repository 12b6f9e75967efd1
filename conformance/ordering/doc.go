// Package ordering proves that messages are consumed in the order of their queue: stock Java consumers with orderly
// listeners, each a process of its own, write what they consume into one file; a checker reads it and finds every
// inversion. Meanwhile members join, leave and are killed, and the broker is restarted.
//
//	go test ./conformance/ordering                              the checker finds what it should
//	go test -count=1 -tags conformance ./conformance/ordering   20,000 messages; CONFORMANCE_LONG=1: 1,000,000,
//	                                                            some minutes: give it -timeout 60m
package ordering
