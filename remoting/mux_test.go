package remoting_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

// TestFastPort: the fast port has all routes but the pull, which it answers like an unknown code.
func TestFastPort(t *testing.T) {
	held := make(chan *remoting.Call, 1)
	m := testMux(held)
	fast := m.Without(hold, 9999)
	if got, want := fast.Codes(), []protocol.RequestCode{big, echo, run}; !slices.Equal(got, want) {
		t.Errorf("codes %v, want %v", got, want)
	}
	if got := m.Codes(); len(got) != 4 || !slices.Contains(got, hold) {
		t.Errorf("codes of the main port %v", got)
	}
	p := remotingtest.Dial(t, remotingtest.Addr(remotingtest.Start(t, fast)))
	a := p.Ask(req(hold, 5, "", nil))
	if a.Code != 3 || a.Remark != " request type 11 not supported" {
		t.Errorf("answer %d %q", a.Code, a.Remark)
	}
	p.Ask(req(echo, 6, "T", nil))
}

// TestUnknownSilence: without an unknown func there is no answer, as at the name server.
func TestUnknownSilence(t *testing.T) {
	m := remoting.NewMux(nil)
	remoting.Handle(m, echo, remoting.Inline, func(c *remoting.Call, _ *struct{}) (*remoting.Command, error) { return c.Success(nil), nil })
	p := remotingtest.Dial(t, remotingtest.Addr(remotingtest.Start(t, m)))
	p.Send(req(4711, 1, "", nil))
	if a := p.Ask(req(echo, 2, "", nil)); a.Code != 0 {
		t.Errorf("answer %+v", a)
	}
	if a, err := p.TryReceive(20 * time.Millisecond); err == nil {
		t.Errorf("answer %+v", a)
	}
}

// TestFarCodes: 5.x has request codes of six digits.
func TestFarCodes(t *testing.T) {
	const far protocol.RequestCode = 200050
	m := remoting.NewMux(nil)
	remoting.Handle(m, far, remoting.Inline, func(c *remoting.Call, _ *struct{}) (*remoting.Command, error) { return c.Success(nil), nil })
	p := remotingtest.Dial(t, remotingtest.Addr(remotingtest.Start(t, m)))
	p.Ask(req(far, 1, "", nil))
	if got := m.Without(far).Codes(); len(got) != 0 {
		t.Errorf("codes %v", got)
	}
}

func TestRegistrationPanics(t *testing.T) {
	handler := func(*remoting.Call, *struct{}) (*remoting.Command, error) { return nil, nil }
	tests := map[string]func(*remoting.Mux){
		"same code twice": func(m *remoting.Mux) {
			remoting.Handle(m, echo, remoting.Inline, handler)
			remoting.Handle(m, echo, remoting.Inline, handler)
		},
		"same far code twice": func(m *remoting.Mux) {
			remoting.Handle(m, 200050, remoting.Inline, handler)
			remoting.Handle(m, 200050, remoting.Inline, handler)
		},
		"run over a code": func(m *remoting.Mux) {
			remoting.Handle(m, echo, remoting.Inline, handler)
			remoting.HandleRun(m, []protocol.RequestCode{run, echo}, func([]*remoting.Call, []*struct{}) {})
		},
		"no lane": func(m *remoting.Mux) { remoting.Handle(m, echo, nil, handler) },
		"header that has no plan": func(m *remoting.Mux) {
			remoting.Handle(m, echo, remoting.Inline, func(*remoting.Call, *struct{ Queues []int }) (*remoting.Command, error) { return nil, nil })
		},
	}
	for name, add := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			add(remoting.NewMux(nil))
		})
	}
}

// TestPanics: a handler that panics is answered SYSTEM_ERROR, wherever it runs, and the server goes on.
func TestPanics(t *testing.T) {
	m := testMux(nil)
	lane := remoting.NewLane("test", 2, 10)
	defer lane.Close()
	boom := func(c *remoting.Call, _ *struct{}) (*remoting.Command, error) {
		var none *header.GetMaxOffsetRequest
		return c.Success(&header.GetMaxOffsetResponse{Offset: int64(none.QueueId)}), nil
	}
	remoting.Handle(m, 200, remoting.Inline, boom)
	remoting.Handle(m, 201, lane, boom)
	remoting.HandleRun(m, []protocol.RequestCode{202}, func(calls []*remoting.Call, _ []*struct{}) {
		calls[0].Reply(calls[0].Success(nil))
		clear(calls)
		panic("after the first answer")
	})
	s := remotingtest.StartWith(t, remotingtest.Config(), m, remoting.Events{})
	p := remotingtest.Dial(t, remotingtest.Addr(s))
	for _, code := range []protocol.RequestCode{200, 201} {
		if a := p.Ask(req(code, 1, "", nil)); a.Code != 1 || !strings.Contains(a.Remark, "nil pointer") {
			t.Errorf("code %d: answer %d %q", code, a.Code, a.Remark)
		}
	}
	p.Send(req(202, 2, "", nil), req(202, 3, "", nil), req(202, 4, "", nil))
	codes := map[int32]int32{}
	for range 3 {
		a := p.Receive()
		codes[a.Opaque] = a.Code
	}
	if codes[2] != 0 || codes[4] != 1 && codes[3] != 1 && len(codes) != 3 {
		t.Errorf("codes by opaque %v", codes)
	}
	p.Ask(req(echo, 5, "T", nil))
	if n := s.Stats().Panics; n < 3 {
		t.Errorf("%d panics counted", n)
	}
}
