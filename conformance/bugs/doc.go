// Package bugs replays public bug reports of RocketMQ servers, black box, by raw frames against either server. Each test names
// the reports of apache/rocketmq that it is of, what it asserts, and whether the official server does the same; where it does
// not, COMPATIBILITY.md has a line.
//
// The tests need the build tag "conformance"; CONFORMANCE_TARGET=official proves the cases and needs a JDK.
package bugs
