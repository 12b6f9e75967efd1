package main

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"rocketd/remoting/acl/admin"
)

// logger writes events to standard error, where a supervisor collects them.
func (p *process) logger() *slog.Logger {
	level := slog.LevelInfo
	name := os.Getenv("ROCKETD_LOG_LEVEL")
	var err error
	if name != "" {
		if err = level.UnmarshalText([]byte(strings.ToUpper(name))); err != nil {
			level = slog.LevelInfo
		}
	}
	log := slog.New(boundLog(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: logValue}), time.Now))
	if err != nil {
		log.Warn("ROCKETD_LOG_LEVEL is none of debug, info, warn, error; info is taken", "value", name)
	}
	return log
}

// logValue gives the level of audit lines its name, and cuts values that are very long.
func logValue(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 || a.Key != slog.LevelKey {
		return cutValue(a)
	}
	if a.Value.Any() == admin.LevelAudit {
		a.Value = slog.StringValue("AUDIT")
	}
	return a
}
