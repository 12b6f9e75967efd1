package store

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"rocketd/protocol"
	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// TestQueryFitsAFrame: the records of a query have room in a frame together; the oldest are given, and one always.
func TestQueryFitsAFrame(t *testing.T) {
	t.Parallel()
	cfg := smallConfig("/store")
	cfg.MappedFileSizeCommitLog, cfg.MaxMessageSize = 40<<20, 20<<20
	s := openStore(t, vfs.NewMem(nil), cfg, Options{})
	defer func() { closeStore(t, s) }()
	large := func(n, size int) *message.Message {
		m := newMessage("T", 0, n)
		m.Body = bytes.Repeat([]byte{byte(n)}, size)
		return m
	}
	for n := range 20 {
		put(t, s, large(n, 1<<20))
	}
	r := s.Query("T", "shared", 64, 0, math.MaxInt64)
	if len(r.Records) != 15 || len(r.Body) > protocol.MaxFrame-1<<10 {
		t.Errorf("%d records, %d bytes", len(r.Records), len(r.Body))
	}
	rest := r.Body
	for i, record := range r.Records {
		if record.QueueOffset() != int64(i) || !bytes.HasPrefix(rest, record) || record.Message().Body[0] != byte(i) {
			t.Fatalf("record %d is %d", i, record.QueueOffset())
		}
		rest = rest[len(record):]
	}
	if len(rest) != 0 {
		t.Errorf("%d bytes behind the records", len(rest))
	}

	alone := large(20, 17<<20)
	alone.Properties = "KEYS\x01alone"
	put(t, s, alone)
	if r := s.Query("T", "alone", 64, 0, math.MaxInt64); len(r.Records) != 1 || len(r.Body) < 17<<20 {
		t.Errorf("a record larger than a frame: %d records, %d bytes", len(r.Records), len(r.Body))
	}
}

// TestQueryShowsItsTopicAlone: the hash of a key is that of "topic#key", and "Aa" and "BB" have one hash in Java. Who may read one
// topic does not get the other's messages by a key with the same hash.
func TestQueryShowsItsTopicAlone(t *testing.T) {
	s := openStore(t, vfs.NewMem(nil), smallConfig("/store"), Options{})
	defer func() { closeStore(t, s) }()
	put(t, s, newMessage("SecretAa", 0, 0), newMessage("SecretBB", 0, 1), newMessage("SecretAa", 0, 2))
	for topic, want := range map[string][]string{"SecretAa": {"body-SecretAa-0-0", "body-SecretAa-0-2"}, "SecretBB": {"body-SecretBB-0-1"}, "SecretA": nil} {
		var got []string
		r := s.Query(topic, "shared", 64, 0, math.MaxInt64)
		for _, record := range r.Records {
			got = append(got, string(record.Message().Body))
		}
		size := 0
		for _, record := range r.Records {
			size += len(record)
		}
		if !slices.Equal(got, want) || size != len(r.Body) {
			t.Errorf("%s: %q, %d bytes of %d; want %q", topic, got, size, len(r.Body), want)
		}
	}
	other := newMessage("T", 0, 3)
	other.Properties = "KEYS\x01Aa"
	put(t, s, other)
	if r := s.Query("T", "BB", 64, 0, math.MaxInt64); len(r.Records) != 1 { // of one topic: the client looks at the keys, as officially
		t.Errorf("%d records of the topic itself", len(r.Records))
	}
}
