package remoting_test

import (
	"errors"
	"sync"
	"testing"

	"rocketd/protocol"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

// TestWatch: whoever watches a code permits each of its requests, on every port and for each kind of route, and is told of one
// answer for each, whoever gives it and however often; nobody is asked about other codes.
func TestWatch(t *testing.T) {
	const early, twice, dropped, panics = protocol.RequestCode(401), protocol.RequestCode(402), protocol.RequestCode(403), protocol.RequestCode(404)
	type header struct{ Topic string }
	m := testMux(make(chan *remoting.Call, 4))
	remoting.Handle(m, early, remoting.Inline, func(c *remoting.Call, _ *header) (*protocol.Command, error) {
		return nil, errors.New("as it is")
	})
	remoting.Handle(m, twice, remoting.Inline, func(c *remoting.Call, _ *header) (*protocol.Command, error) {
		c.Reply(c.Answer(protocol.TopicNotExist, "the first", nil))
		c.ReplyError(errors.New("the second"))
		return c.Success(nil), nil
	})
	remoting.Handle(m, dropped, remoting.Inline, func(c *remoting.Call, _ *header) (*protocol.Command, error) {
		c.Drop()
		return nil, nil
	})
	remoting.Handle(m, panics, remoting.Inline, func(*remoting.Call, *header) (*protocol.Command, error) { panic("handler") })
	m.Guard(func(c *remoting.Call) error {
		if topic, _ := c.Command().Field("topic"); topic == "guarded" {
			return protocol.Errorf(protocol.SystemError, "by the guard")
		}
		return nil
	})
	type told struct {
		code   int32
		remark string
	}
	var mu sync.Mutex
	asked, answers := 0, map[int32][]told{}
	m.Watch([]protocol.RequestCode{run, early, twice, dropped, panics, 4711}, func(c *remoting.Call) error {
		mu.Lock()
		defer mu.Unlock()
		asked++
		if topic, _ := c.Command().Field("topic"); topic == "refused" {
			return protocol.Errorf(protocol.NoPermission, "by the watch")
		}
		return nil
	}, func(c *remoting.Call, a *protocol.Command) {
		mu.Lock()
		defer mu.Unlock()
		opaque := c.Command().Opaque
		if a == nil {
			answers[opaque] = append(answers[opaque], told{-1, ""})
			return
		}
		answers[opaque] = append(answers[opaque], told{a.Code, a.Remark})
	})
	for name, mux := range map[string]*remoting.Mux{"main": m, "fast": m.Without(hold)} {
		asked, answers = 0, map[int32][]told{}
		p := remotingtest.Dial(t, remotingtest.Addr(remotingtest.Start(t, mux)))
		want := map[int32]told{}
		for i, tt := range []struct {
			code   protocol.RequestCode
			topic  string
			oneway bool
			want   told
		}{
			{run, "T", false, told{0, "T"}},
			{run, "refused", false, told{16, "by the watch"}},
			{run, "guarded", false, told{1, "by the guard"}},
			{early, "T", false, told{1, "as it is"}},
			{early, "T", true, told{1, "as it is"}},
			{early, "refused", true, told{16, "by the watch"}},
			{twice, "T", false, told{17, "the first"}},
			{twice, "T", true, told{17, "the first"}},
			{dropped, "T", false, told{-1, ""}},
			{panics, "T", false, told{1, "internal error: handler"}},
		} {
			cmd := protocol.NewRequest(tt.code, nil, nil)
			cmd.Opaque = int32(i + 1)
			cmd.SetField("topic", tt.topic)
			if tt.oneway {
				cmd.Flag |= protocol.FlagOneway
			}
			want[cmd.Opaque] = tt.want
			p.Send(cmd)
		}
		if a := askUntil(p, 100); a.Opaque != 100 {
			t.Fatalf("%s port: the last answer is %+v", name, a)
		}
		mu.Lock()
		for opaque, w := range want {
			if got := answers[opaque]; len(got) != 1 || got[0] != w {
				t.Errorf("%s port, request %d: told %v, want %v once", name, opaque, got, w)
			}
		}
		if len(answers) != len(want) || asked != len(want) {
			t.Errorf("%s port: %d asked, %d told of, want %d", name, asked, len(answers), len(want))
		}
		mu.Unlock()
	}
}

// askUntil asks for an echo and returns its answer; those before are taken off.
func askUntil(p *remotingtest.Peer, opaque int32) *protocol.Command {
	p.Send(req(echo, opaque, "T", nil))
	for {
		if a := p.Receive(); a.Opaque == opaque {
			return a
		}
	}
}
