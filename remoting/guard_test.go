package remoting_test

import (
	"strings"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

// TestGuard: what a guard refuses reaches no route of any kind, on no port; a guard that panics refuses.
func TestGuard(t *testing.T) {
	m := testMux(make(chan *remoting.Call, 1))
	m.Guard(func(c *remoting.Call) error {
		switch topic, _ := c.Command().Field("topic"); topic {
		case "refused":
			return protocol.Errorf(protocol.NoPermission, "not for you")
		case "panic":
			panic("guard")
		}
		return nil
	})
	with := func(code protocol.RequestCode, opaque int32, topic string) *protocol.Command {
		cmd := protocol.NewRequest(code, nil, nil)
		cmd.Opaque = opaque
		cmd.SetField("topic", topic)
		return cmd
	}
	for name, mux := range map[string]*remoting.Mux{"main": m, "fast": m.Without(hold)} {
		p := remotingtest.Dial(t, remotingtest.Addr(remotingtest.Start(t, mux)))
		for _, code := range []protocol.RequestCode{echo, run, hold, 4711} {
			if a := p.Ask(with(code, 1, "refused")); a.Code != int32(protocol.NoPermission) || a.Remark != "not for you" {
				t.Errorf("%s port, code %d: answer %d %q", name, code, a.Code, a.Remark)
			}
			if a := p.Ask(with(code, 2, "panic")); a.Code != int32(protocol.SystemError) || !strings.Contains(a.Remark, "guard") {
				t.Errorf("%s port, code %d: answer %d %q", name, code, a.Code, a.Remark)
			}
		}
		oneway := with(echo, 3, "refused")
		oneway.Flag |= protocol.FlagOneway
		p.Send(oneway)
		if a := p.Ask(req(echo, 4, "T", nil)); a.Opaque != 4 || a.Code != 0 {
			t.Errorf("%s port: answer %+v", name, a)
		}
		if a, err := p.TryReceive(20 * time.Millisecond); err == nil {
			t.Errorf("%s port: a oneway request is answered %+v", name, a)
		}
	}
}
