// Package pop holds the cases of POP consumption over remoting (5.x): raw frames, and stock Java consumers in POP mode.
// Their official server is 5.3.3, for 4.9 has nothing of it.
//
//	go test -tags conformance ./conformance/pop                                rocketd
//	CONFORMANCE_TARGET=official go test -tags conformance ./conformance/pop    the official 5.3.3
package pop
