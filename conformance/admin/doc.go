// Package admin runs the stock mqadmin, 4.9.8 and 5.5.0, against the target of conformance/target and reads what it prints.
// All subcommands share one JVM (conformance/java, class Admin). The expected text is that of the official server.
//
// testdata has a folder of transcripts for each generation of the tool: every subcommand, on two brokers and two name
// servers, with what the official server made it print. normal_test.go has what is not compared, and why; commands_test.go
// the steps at which rocketd differs. A new step is a line "$ command" in a transcript, and a recording of it:
//
//	go test -count=1 -tags conformance ./conformance/admin
//	CONFORMANCE_TARGET=official go test -count=1 -tags conformance ./conformance/admin -run Transcripts -update
//
// What needs request 351, which the official 4.9 broker refuses, stands there as 5.3.3 answers it:
//
//	go test -count=1 -tags conformance ./conformance/admin -run Transcripts5 -update -update5
package admin
