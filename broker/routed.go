package broker

import (
	"rocketd/protocol"
	"rocketd/remoting"
)

// Routed returns the request codes that a broker serves, in no particular order. Together with Unsupported it covers
// every declared code; conformance/house checks that, and writes the table of COMPATIBILITY.md from both.
func Routed() []protocol.RequestCode { return mux().Codes() }

// Headers returns the header of every request code that a broker serves: conformance/badinput makes its requests of them.
func Headers() map[protocol.RequestCode]*protocol.Plan { return mux().Plans() }

// mux has the routes of a broker that does not run.
func mux() *remoting.Mux {
	cfg := DefaultConfig("")
	b := &Broker{lanes: newLanes(&cfg)}
	m := remoting.NewMux(nil)
	b.routes(m)
	return m
}
