// Package client runs cases with the stock Go client, rocketmq-client-go/v2, against a server. The same sources are
// run with two versions of it: go.mod has the last release, go.newest.mod the newest commit.
//
//	go test -tags conformance ./...
//	go test -tags conformance,newest -modfile=go.newest.mod ./...
//
// It is a module of its own, so that the product's go.mod knows nothing of the client. All cases of a run share one process
// and run side by side, each with topics, groups and instance names of its own; package rocketd/conformance/target says
// how the server is chosen.
package client
