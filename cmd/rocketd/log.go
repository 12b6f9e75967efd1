package main

import (
	"log/slog"
	"os"
	"strings"

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
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: auditLevel}))
	if err != nil {
		log.Warn("ROCKETD_LOG_LEVEL is none of debug, info, warn, error; info is taken", "value", name)
	}
	return log
}

// auditLevel gives the level of audit lines its name.
func auditLevel(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.LevelKey && a.Value.Any() == admin.LevelAudit {
		a.Value = slog.StringValue("AUDIT")
	}
	return a
}
