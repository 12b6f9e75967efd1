// Package timer holds raw-frame cases of messages for a time of their own, which 5.x has: their official server is 5.3.3. That an
// official 4.9 broker shows none of them, and rocketd delivers them after it, is here too. The stock client's cases are in
// conformance/java (timer-…).
//
//	go test -tags conformance ./conformance/timer                                rocketd
//	CONFORMANCE_TARGET=official go test -tags conformance ./conformance/timer    the official 5.3.3
package timer
