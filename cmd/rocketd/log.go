package main

import (
	"log/slog"
	"os"
	"strings"
)

// logger writes events to standard error, where a supervisor collects them.
func (p *process) logger() *slog.Logger {
	level := slog.LevelInfo
	if name := os.Getenv("ROCKETD_LOG_LEVEL"); name != "" {
		if err := level.UnmarshalText([]byte(strings.ToUpper(name))); err != nil {
			level = slog.LevelInfo
		}
	}
	return slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: level}))
}
