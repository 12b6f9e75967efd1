package store

import (
	"bytes"
	"math"
	"testing"

	"rocketd/protocol"
	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// TestQueryFitsAFrame: the records of a query have room in a frame together; the oldest are given, and one always.
func TestQueryFitsAFrame(t *testing.T) {
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
