// Package body is the JSON bodies of requests and answers: plain structs whose members are written by
// package compat in fastjson's form (field names with the first letter lowered, in alphabetical order). The
// shapes are those of the official classes. A member tagged omitempty is null in Java when it is empty.
package body

// MessageQueue names one queue. It is comparable and stands as a key in maps, where fastjson writes it as an
// inline object.
type MessageQueue struct {
	BrokerName string
	QueueId    int32
	Topic      string
}

// DataVersion tells whether a table has changed: two are the same when both members are.
type DataVersion struct {
	Counter   int64
	Timestamp int64 // ms since the epoch of the last change
}

// Next is the version after one more change at the given time, in ms since the epoch.
func (v DataVersion) Next(millis int64) DataVersion {
	return DataVersion{Counter: v.Counter + 1, Timestamp: millis}
}

// KVTable is a table of texts: runtime information, a namespace of the name server's KV configuration.
type KVTable struct {
	Table map[string]string
}
