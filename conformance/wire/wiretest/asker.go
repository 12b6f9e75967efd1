// Package wiretest is what tests that talk to a server by raw frames share.
package wiretest

import (
	"strconv"
	"testing"
	"time"

	"rocketd/conformance/wire"
)

// Asker asks a server; a question without an answer, or with the wrong one, ends the test.
type Asker struct {
	T        testing.TB
	Conn     *wire.Conn
	Patience time.Duration // with one answer
}

// Ask sends a request and returns the answer, whatever it says.
func (a *Asker) Ask(f *wire.Frame) *wire.Frame {
	a.T.Helper()
	answer, err := a.Conn.Call(f, a.Patience)
	if err != nil {
		a.T.Fatalf("request %d %v: %v", f.Code, f.Ext, err)
	}
	return answer
}

// Done sends a request that must be answered SUCCESS.
func (a *Asker) Done(f *wire.Frame) *wire.Frame {
	a.T.Helper()
	answer := a.Ask(f)
	if answer.Code != 0 {
		a.T.Fatalf("request %d %v: %d %s", f.Code, f.Ext, answer.Code, answer.Remark)
	}
	return answer
}

// Number sends a request whose answer has a number in a field.
func (a *Asker) Number(field string, f *wire.Frame) int64 {
	a.T.Helper()
	n, err := strconv.ParseInt(a.Done(f).Ext[field], 10, 64)
	if err != nil {
		a.T.Fatalf("request %d %v: %v", f.Code, f.Ext, err)
	}
	return n
}
