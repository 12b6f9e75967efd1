package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"rocketd/remoting/acl/admin"
)

// Peers choose the names that the log tells, and how often: anybody who reaches a port can have a line written with each request
// that is refused, as long as a frame. So values are cut, and of each level but that of the audit log, and Debug, only so many
// lines are written.

// How long a value may be (bytes), and the stack of a panic; how many lines of a level are written at once, and how many a
// second when these are used up. Large installations write hundreds a second while all their clients connect again.
const (
	maxLogValue = 4 << 10
	maxLogStack = 32 << 10
	logBurst    = 10_000
	logRate     = 500
)

// cutValue cuts the value of an attribute.
func cutValue(a slog.Attr) slog.Attr {
	limit := maxLogValue
	if a.Key == "stack" {
		limit = maxLogStack
	}
	var text string
	switch a.Value.Kind() {
	case slog.KindString:
		text = a.Value.String()
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case error:
			text = v.Error()
		case []byte:
			text = string(v)
		default:
			text = fmt.Sprintf("%+v", v)
		}
	}
	if len(text) > limit {
		a.Value = slog.StringValue(strings.ToValidUTF8(text[:limit], "") + "…")
	}
	return a
}

// boundHandler writes no more lines of a level than its budget has.
type boundHandler struct {
	slog.Handler
	budgets *budgets
}

// budgets are those of all levels. They are shared by the loggers that are made of one.
type budgets struct {
	clock func() time.Time
	mu    sync.Mutex // a leaf
	info  budget
	warn  budget
	err   budget
}

// budget is the lines of a level that may be written now, as of a time, and how many were left out since the last.
type budget struct {
	lines   float64
	at      time.Time
	omitted uint64
}

// boundLog bounds the lines of a handler.
func boundLog(h slog.Handler, clock func() time.Time) slog.Handler {
	full := budget{lines: logBurst, at: clock()}
	return &boundHandler{h, &budgets{clock: clock, info: full, warn: full, err: full}}
}

// Handle writes a line, or counts it; the next one of its level tells how many are missing.
func (h *boundHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo || r.Level >= admin.LevelAudit {
		return h.Handler.Handle(ctx, r)
	}
	omitted, ok := h.budgets.take(r.Level)
	if !ok {
		return nil
	}
	if omitted > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Uint64("omittedLines", omitted))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *boundHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &boundHandler{h.Handler.WithAttrs(attrs), h.budgets}
}

// WithGroup implements slog.Handler.
func (h *boundHandler) WithGroup(name string) slog.Handler {
	return &boundHandler{h.Handler.WithGroup(name), h.budgets}
}

// take takes a line from the budget of a level, and tells how many were left out before it.
func (b *budgets) take(level slog.Level) (omitted uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := &b.info
	switch {
	case level >= slog.LevelError:
		of = &b.err
	case level >= slog.LevelWarn:
		of = &b.warn
	}
	now := b.clock()
	if passed := now.Sub(of.at); passed > 0 {
		of.lines = min(logBurst, of.lines+passed.Seconds()*logRate)
	}
	of.at = now
	if of.lines < 1 {
		of.omitted++
		return 0, false
	}
	of.lines--
	omitted, of.omitted = of.omitted, 0
	return omitted, true
}
