package compat

import (
	"slices"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"flushDiskType", "autoCreateTopicEnable", "traceOn", "deleteWhen", "brokerIP1", "brokerIP2", "brokerId", "mappedFileSizeCommitLog"}
	for word, want := range map[string]string{
		"flushDisktype":          "flushDiskType",           // another case
		"autoCreateTopicEnabel":  "autoCreateTopicEnable",   // two letters changed places
		"mapedFileSizeCommitLog": "mappedFileSizeCommitLog", // the key of 4.2 and earlier
		"tracOn":                 "traceOn",
		"delteWhen":              "deleteWhen",
		"brokerIP":               "brokerIP1", // the first of equals
		"storePathIndex":         "",
		"nonsense":               "",
		"on":                     "", // too short for any slip
		"":                       "",
		"flushDiskType":          "", // is known
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestUnknownKeys(t *testing.T) {
	slips, others := UnknownKeys([]string{"abortFile", "", "deletewhen"}, []string{"deleteWhen", "listenPort"})
	if !slices.Equal(slips, []KeyValue{{"deletewhen", "deleteWhen"}}) || !slices.Equal(others, []string{"abortFile"}) {
		t.Errorf("slips %v, others %v", slips, others)
	}
}
