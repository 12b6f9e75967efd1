// Package java drives the stock Java clients: the cases are the Maven project in this folder (src/), run side
// by side in one JVM against the target of conformance/target, once with the 4.9.8 client, once with the same
// client's compact binary header, and once with the 5.5.0 client in remoting mode.
//
//	go test -count=1 -tags conformance ./conformance/java
//	CONFORMANCE_TARGET=official go test …                    proves the cases
//	CONFORMANCE_JAVA_ONLY='retry-.*' go test …                only some cases
//	CONFORMANCE_SKIP_JAVA=1 go test …                        on a machine without Java
package java
