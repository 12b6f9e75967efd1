package namesrv

import (
	"rocketd/protocol"
	"rocketd/remoting"
)

// Routed returns the request codes that a name server serves, in no particular order. It answers nothing at all to
// the others, as the official one.
func Routed() []protocol.RequestCode { return mux().Codes() }

// Headers returns the header of every request code that a name server serves: conformance/badinput makes its requests of them.
func Headers() map[protocol.RequestCode]*protocol.Plan { return mux().Plans() }

// mux has the routes of a name server that does not run.
func mux() *remoting.Mux {
	m := remoting.NewMux(nil)
	(&Server{}).handle(m)
	return m
}
