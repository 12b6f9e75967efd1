// Package differential asks servers the same questions byte for byte and expects the answers of the official server:
// frames that no client would send, requests with a field missing or wrong, messages beyond the limits; and recordings of
// stock clients' sessions with the official server, replayed and compared answer by answer.
//
// The expected answers stand in tables here. They come from the description of the protocol and hold against the
// official server itself (CONFORMANCE_TARGET=official), which is what proves the tables. The tests need the build
// tag "conformance"; package target says how a server is chosen.
package differential
