package namesrv

import (
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// updateConfig changes the running configuration and its file. Keys that nobody knows and values that do not parse
// are passed over and the answer is a success, as in the official server; we log them.
func (s *Server) updateConfig(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	cmd := c.Command()
	if cmd.Body == nil {
		return c.Success(nil), nil
	}
	p, err := compat.ParseProperties(cmd.Body)
	if err != nil {
		s.log.Warn("configuration update refused", "error", err, "peer", c.Conn().RemoteAddr())
		return nil, protocol.Errorf(protocol.SystemError, "string2Properties error")
	}
	for _, key := range p.Keys() {
		if s.blackList[key] {
			return nil, protocol.Errorf(protocol.NoPermission, "Can not update config in black list.")
		}
	}
	s.updates.Lock()
	next := *s.config.Load()
	if err := next.bind(p, false); err != nil {
		s.log.Warn("configuration update passed over", "error", err, "peer", c.Conn().RemoteAddr())
	}
	err = next.Validate()
	if err == nil {
		s.config.Store(&next)
	}
	s.updates.Unlock()
	if err != nil {
		return nil, protocol.Errorf(protocol.NoPermission, "%v", err)
	}
	s.log.Info("configuration updated", "keys", p.Keys(), "peer", c.Conn().RemoteAddr())
	s.configFile.Changed(saved(c))
	return nil, nil
}

// getConfig answers the configuration as a properties file.
func (s *Server) getConfig(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	answer := c.Success(nil)
	answer.Body = s.config.Load().Text()
	return answer, nil
}
