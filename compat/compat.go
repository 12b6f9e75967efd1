// Package compat is what Java and its libraries do that shows on the wire or on disk: fastjson's dialect
// of JSON, String.hashCode, java.util.Properties, the binding of properties to configuration objects, times in ms as large as a
// long, and the way the official servers write their configuration files. Each behaviour has a file of its own.
package compat
