// Package badinput asks both servers for every request code that is routed, in every way that is wrong: no fields, each field
// missing, empty, no number, out of range or naming what is not there; no body, half a body, a body of another shape, and
// 16 MiB. The requests are made of the registry of routes, so a new code is covered without a line here.
//
// What the official server answered is in testdata/, written by
//
//	CONFORMANCE_TARGET=official go test -tags conformance ./conformance/badinput -update
//
// so rocketd needs no official server beside it. Where its answer is another one, differences_test.go says why it is better.
package badinput
