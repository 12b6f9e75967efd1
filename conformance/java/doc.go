// Package java drives the stock Java clients: the cases are the Maven project in this folder (src/), run side
// by side in one JVM against the target of conformance/target, once with the 4.9.8 client, once with the same
// client's compact binary header, and once with the 5.5.0 client in remoting mode.
//
//	go test -tags conformance ./conformance/java
//	CONFORMANCE_TARGET=official go test -tags conformance ./conformance/java   proves the cases
//	CONFORMANCE_JAVA_ONLY='retry-.*' …                                         only some cases
//	CONFORMANCE_SKIP_JAVA=1 …                                                  on a machine without Java
package java
