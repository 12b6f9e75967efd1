package acltest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
)

// Log is a log in JSON. It may be written and read at once.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(line)
}

// String is all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Audit are the fields of the lines of the audit log, all of which must have its level.
func (l *Log) Audit(tb testing.TB) (lines []map[string]any) {
	tb.Helper()
	for s := bufio.NewScanner(strings.NewReader(l.String())); s.Scan(); {
		var line struct {
			Level string
			Audit map[string]any
		}
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			tb.Fatal(err)
		}
		if line.Audit != nil {
			if line.Level != "ERROR+4" {
				tb.Errorf("level %s", line.Level)
			}
			lines = append(lines, line.Audit)
		}
	}
	return lines
}
