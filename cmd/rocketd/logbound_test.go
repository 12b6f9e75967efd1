package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"rocketd/remoting/acl/admin"
)

// TestLogIsBounded: a flood of lines of one level keeps neither those of others back nor the audit log, and is told of; then there
// is room again.
func TestLogIsBounded(t *testing.T) {
	var out bytes.Buffer
	now := time.UnixMilli(1_700_000_000_000)
	log := slog.New(boundLog(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: logValue}), func() time.Time { return now })).With("server", "broker")
	lines := func() int {
		n := strings.Count(out.String(), "\n")
		out.Reset()
		return n
	}
	for range 25_000 {
		log.WithGroup("g").Info("joined")
	}
	if n := lines(); n != 10_000 {
		t.Errorf("%d lines of 25000, want the first 10000", n)
	}
	log.Warn("told")
	log.Error("told")
	for range 20_000 {
		log.Log(t.Context(), admin.LevelAudit, "admin request")
	}
	if n := lines(); n != 20_002 {
		t.Errorf("%d lines, want a warning, an error and 20000 of the audit log", n)
	}
	now = now.Add(100 * time.Millisecond) // 50 lines
	log.Info("first")
	if text := out.String(); !strings.Contains(text, "omittedLines=15000") {
		t.Errorf("written: %s", text)
	}
	out.Reset()
	for range 100 {
		log.Info("joined")
	}
	if n := lines(); n != 49 {
		t.Errorf("%d lines, want 49", n)
	}
	now = now.Add(-time.Hour) // a clock that steps back gives nothing, and takes nothing for long
	log.Info("no room")
	now = now.Add(time.Minute)
	for range 20_000 {
		log.Info("joined")
	}
	if n := lines(); n != 10_000 {
		t.Errorf("%d lines after a minute, want 10000", n)
	}
}

// TestLogValuesAreCut: names that peers choose may have the size of a frame.
func TestLogValuesAreCut(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, value := range map[string]any{"text": long, "error": errors.New(long), "bytes": []byte(long), "list": []string{"a", long}, "group": slog.GroupValue(slog.String("key", long))} {
		var out bytes.Buffer
		slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: logValue})).Info("line", "value", value, "short", "kept")
		if n := out.Len(); n < 4<<10 || n > 5<<10 || !strings.HasSuffix(out.String(), "short=kept\n") {
			t.Errorf("%s: %d bytes, ends with %.40q", name, n, out.String()[max(0, n-40):])
		}
	}
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: logValue})).Log(t.Context(), admin.LevelAudit, "line", "n", 7, "keys", []string{"a", "b"}, "err", errors.New("why"), "utf8", strings.Repeat("é", 3000))
	if text := out.String(); !strings.Contains(text, "level=AUDIT msg=line n=7 keys=\"[a b]\" err=why utf8=é") || !strings.HasSuffix(text, "é…\n") {
		t.Errorf("written %.120q … %.20q", text, text[len(text)-20:])
	}
}
