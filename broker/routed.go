package broker

import (
	"rocketd/protocol"
	"rocketd/remoting"
)

// Routed returns the request codes that a broker serves, in no particular order. Together with Unsupported it covers
// every declared code; conformance/house checks that, and writes the table of COMPATIBILITY.md from both.
func Routed() []protocol.RequestCode {
	cfg := DefaultConfig("")
	b := &Broker{lanes: newLanes(&cfg)}
	m := remoting.NewMux(nil)
	b.routes(m)
	return m.Codes()
}
