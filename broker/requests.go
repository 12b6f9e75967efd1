package broker

import (
	"rocketd/remoting"
)

// routes adds every request that the broker serves: code, lane, handler. Codes without a line here are in
// unsupported.go.
func (b *Broker) routes(m *remoting.Mux) {
}
