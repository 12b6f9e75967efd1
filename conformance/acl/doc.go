// Package acl asks a broker with access control: each request code for each kind of account and resource, as raw frames in
// both header forms, and administration by mqadmin. Where rocketd is stricter than the official broker (COMPATIBILITY.md) a
// case has two answers. The tests need the build tag "conformance"; package target says how a server is chosen.
package acl
