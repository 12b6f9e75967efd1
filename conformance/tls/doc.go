// Package tls has the cases of TLS: what each mode serves, client certificates, certificates that change, and mqadmin. The
// stock Java and Go clients over TLS are with their other cases (conformance/java, conformance/client).
package tls
