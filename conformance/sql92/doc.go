// Package sql92 asks a broker for messages by SQL92 expressions, black box and by raw frames: a table of expressions and messages
// of which the official broker has given the answers, and what a broker keeps of the expressions of its consumers.
//
// The tests need the build tag "conformance"; CONFORMANCE_TARGET=official proves the cases and needs a JDK. With it, -update
// records the answers of the table anew, for the unit tests of broker/filter/sql92 too.
package sql92
