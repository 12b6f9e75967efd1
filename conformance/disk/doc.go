// Package disk proves that one store directory serves both servers: the official broker and rocketd take turns on it,
// each stopped in order or killed, and every message that any of them has acknowledged must be there, the same bytes
// at the same place, under whoever runs next. It also compares the files that both write for the same requests, byte
// for byte, and tries to start each on a directory that the other is using.
//
// The expected values come from what was sent and acknowledged, and from the official format as this package itself
// reads it; nothing is shared with the product. With CONFORMANCE_TARGET=official the official broker takes all turns,
// which proves the cases; with rocketd (the default) the two alternate. CONFORMANCE_LONG=1 runs more turns, more messages
// and more configurations. The tests need the build tag "conformance" and a JDK.
package disk
