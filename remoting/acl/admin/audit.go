package admin

import (
	"context"
	"log/slog"
	"time"

	"rocketd/protocol"
	"rocketd/remoting"
)

// LevelAudit is the level of audit lines: above Error, so that no level that a log is kept at leaves them out.
const LevelAudit = slog.Level(12)

// maxFailures is how many lines a second tell of requests that were not a success; the others are counted in the next line.
// Requests that change something each have their line.
const maxFailures = 100

// audit writes the line of one request: who, from where, what, and what came of it. nil = the handler gave no answer.
//
// In all lines the fields have the group "audit": accessKey is that of the account that has signed the request, "-" when
// nobody has (then claimed is the key that it names), from the peer's address, server who was asked, code, arguments, result the
// name of the response code, and remark what went with it. No secret is in it.
func (s *Surface) audit(c *remoting.Call, answer *protocol.Command) {
	cmd := c.Command()
	result, remark, failed := "none", "", true
	if answer != nil {
		code := protocol.ResponseCode(answer.Code)
		result, remark, failed = code.String(), answer.Remark, code != protocol.Success
	}
	omitted, ok := s.room(failed)
	if !ok {
		return
	}
	a := argumentsOf(cmd, s.plans[protocol.RequestCode(cmd.Code)])
	key, claimed := s.who(cmd)
	fields := []any{"accessKey", key}
	if claimed != "" {
		fields = append(fields, "claimed", cut(claimed))
	}
	fields = append(fields, "from", c.Conn().RemoteAddr().String(), "server", s.o.Server, "code", protocol.RequestCode(cmd.Code).String(),
		"arguments", a.text.String(), "result", result)
	if cmd.IsOneway() {
		fields = append(fields, "oneway", true)
	}
	if failed && remark != "" {
		fields = append(fields, "remark", cut(a.mask(remark)))
	}
	if omitted > 0 {
		fields = append(fields, "omittedFailures", omitted)
	}
	s.o.Log.Log(context.Background(), LevelAudit, "admin request", slog.Group("audit", fields...))
}

// auditRefused writes a line for a request that must be signed and is not; what is let in is no matter of administrators.
func (s *Surface) auditRefused(c *remoting.Call, answer *protocol.Command) {
	if answer != nil && answer.Code == int32(protocol.NoPermission) {
		s.audit(c, answer)
	}
}

// who is the account that has signed, and else the key that the request claims.
func (s *Surface) who(cmd *protocol.Command) (accessKey, claimed string) {
	if s.o.Accounts != nil {
		if key, ok := s.o.Accounts.Signer(cmd); ok {
			return key, ""
		}
	}
	claimed, _ = cmd.Field("AccessKey")
	return "-", claimed
}

// room tells whether there is room for a line, and how many were left out since the last one.
func (s *Surface) room(failed bool) (omitted int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.o.Clock(); now.Sub(s.mu.window) >= time.Second || now.Before(s.mu.window) {
		s.mu.window, s.mu.failures = now, 0
	}
	if failed {
		if s.mu.failures >= maxFailures {
			s.mu.omitted++
			return 0, false
		}
		s.mu.failures++
	}
	omitted, s.mu.omitted = s.mu.omitted, 0
	return omitted, true
}
