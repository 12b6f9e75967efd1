// Package admin runs the stock mqadmin 4.9.8 against the target of conformance/target and reads what it prints. All
// subcommands share one JVM (conformance/java, class Admin). The expected text is that of the official server.
//
//	go test -count=1 -tags conformance ./conformance/admin
package admin
