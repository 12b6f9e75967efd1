package namesrv

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// updateConfig changes the running configuration and its file. Keys that nobody knows are passed over and the answer
// is a success, as in the official server; values that do not fit their key are refused with the key and what is wrong,
// and then nothing changes (the official server says yes and ignores them). Rare as it is, it writes the file on the
// connection's goroutine.
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
	p.ForgetLines()
	for _, key := range p.Keys() {
		if s.blackList[key] || remoting.IsTLSKey(key) { // compat: these are no keys of the official name server
			return nil, protocol.Errorf(protocol.NoPermission, "Can not update config in black list.")
		}
	}
	if err := s.change(p, c.Conn().RemoteAddr().String(), writeConfig); err != nil {
		s.log.Warn("configuration update refused", "error", err, "peer", c.Conn().RemoteAddr())
		return nil, protocol.Errorf(protocol.SystemError, "the configuration is left as it was: %v", err)
	}
	return c.Success(nil), nil
}

// liveKeys are those that count at once; the others that have an effect count from the next start on.
var liveKeys = []string{"orderMessageEnable", "adminAllowedNetworks", "maxRouteBytes", "maxKvConfigBytes"}

// change checks new values and, when all are good, writes them down and puts them in force; else nothing changes.
func (s *Server) change(p *compat.Properties, by string, write func(path string, changed []compat.KeyValue) error) error {
	s.updates.Lock()
	defer s.updates.Unlock()
	old := s.config.Load()
	next := *old
	if err := next.bind(p, false); err != nil {
		return err
	}
	if err := errors.Join(next.checkNumbers(p), next.Validate()); err != nil {
		return err
	}
	var changed []compat.KeyValue
	var later, ignored []string
	known := make(map[string]bool)
	for _, kv := range next.Items() {
		known[kv.Key] = true
	}
	for _, kv := range p.All() {
		switch {
		case !known[kv.Key]:
			ignored = append(ignored, kv.Key)
			continue
		case next.isExtra(kv.Key), slices.Contains(liveKeys, kv.Key), slices.Contains(withoutEffect, kv.Key):
		default:
			later = append(later, kv.Key)
		}
		changed = append(changed, kv)
	}
	if len(changed) > 0 {
		if err := write(old.ConfigStorePath, changed); err != nil {
			return fmt.Errorf("its file could not be written: %w", err)
		}
		if !next.read { // compat: as the official name server
			s.log.Warn("updates are written to a file that no start reads unless it is given with -c", "file", old.ConfigStorePath)
		}
	}
	for _, kv := range compat.OddBooleans(p, &next) {
		s.log.Warn("a boolean that is neither true nor false; it is taken for false, as the official name server does", "key", kv.Key, "value", kv.Value)
	}
	s.config.Store(&next)
	surface := next.SurfaceConfig
	surface.AdminAccountsOnly = s.adminAccountsOnly // the accounts are read at the start
	_ = s.surface.Set(surface)                      // has been validated
	s.log.Info("configuration updated", "changed", changed, "needARestart", later, "ignored", ignored, "by", by)
	next.tellUnknown(s.log, ignored)
	return nil
}

// checkNumbers refuses negative values: all numbers are ports, times, sizes and counts.
func (c *Config) checkNumbers(p *compat.Properties) error {
	var all []error
	kinds := make(map[string]string)
	for _, kv := range compat.PropertiesOf(DefaultConfig("")) {
		kinds[kv.Key] = kv.Value
	}
	for _, kv := range p.All() {
		if _, err := strconv.ParseInt(kinds[kv.Key], 10, 64); err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(kv.Value), 10, 64); err == nil && n < 0 {
			all = append(all, fmt.Errorf("%s=%s: must be 0 or more", kv.Key, kv.Value))
		}
	}
	return errors.Join(all...)
}

// writeConfig puts changed keys into the file at path and leaves all else as it stands there. (The official server
// overwrites it with every key that it has.) Of a link it is the file that is replaced.
func writeConfig(path string, changed []compat.KeyValue) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return compat.EditConfigFile(compat.OSFiles, path, changed)
}

// Reload puts in force what has changed in the configuration file: read is what New would be given now. Nothing is
// written. The error says what is wrong, and then everything stays as it was.
func (s *Server) Reload(read Config) error {
	if abs, err := filepath.Abs(read.KvConfigPath); err == nil {
		read.KvConfigPath = abs
	}
	old := s.config.Load()
	was := make(map[string]string)
	for _, kv := range compat.PropertiesOf(old) {
		was[kv.Key] = kv.Value
	}
	p := new(compat.Properties)
	for _, kv := range compat.PropertiesOf(&read) {
		if was[kv.Key] != kv.Value {
			p.Set(kv.Key, kv.Value)
		}
	}
	if err := read.Review(s.log); err != nil {
		return err
	}
	if read.TLS != old.TLS {
		s.log.Warn("settings of TLS have changed; they count from the next start on")
	}
	if err := s.tls.Reload(); err != nil {
		return err
	}
	if err := s.change(p, "its file", func(string, []compat.KeyValue) error { return nil }); err != nil {
		return err
	}
	s.updates.Lock()
	defer s.updates.Unlock()
	next := *s.config.Load()
	next.extra = read.extra
	s.config.Store(&next)
	return nil
}

// getConfig answers the configuration as a properties file.
func (s *Server) getConfig(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	answer := c.Success(nil)
	answer.Body = s.config.Load().Text()
	return answer, nil
}
