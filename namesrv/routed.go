package namesrv

import (
	"rocketd/protocol"
	"rocketd/remoting"
)

// Routed returns the request codes that a name server serves, in no particular order. It answers nothing at all to
// the others, as the official one (spec/wire.md section 6).
func Routed() []protocol.RequestCode {
	m := remoting.NewMux(nil)
	(&Server{}).handle(m)
	return m.Codes()
}
