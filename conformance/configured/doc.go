// Package configured holds cases of transactions, filters, replies, traces, delays and light message queues that need a broker with
// keys of its own: what a key changes is seen only where it has another value than the default. One broker serves them all.
//
//	go test -tags conformance ./conformance/configured                                rocketd
//	CONFORMANCE_TARGET=official go test -tags conformance ./conformance/configured    the official 4.9.7
package configured
