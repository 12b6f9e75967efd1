package namesrv

import (
	"fmt"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting/remotingtest"
)

// thousand registers a broker with a thousand topics.
func thousand(s *Server) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("topic-%04d", i)
	}
	s.routes.register(broker("broker-a", "10.0.0.1:10911", 0), topics(1, 6, names...), new(fakeLink))
}

// BenchmarkRouteRequest is a route request, client side included: 64 in flight on one connection, a thousand topics.
func BenchmarkRouteRequest(b *testing.B) {
	s, _ := start(b, testConfig(b.TempDir()))
	thousand(s)
	p := remotingtest.Dial(b, s.Addr())
	var frames []byte
	for i := range 64 {
		c := protocol.NewRequest(protocol.GetRouteInfoByTopic, &header.GetRouteInfoRequest{Topic: fmt.Sprintf("topic-%04d", i)}, nil)
		c.Opaque = int32(i)
		frames = protocol.AppendFrame(frames, c)
	}
	b.ResetTimer()
	for n := 0; n < b.N; n += 64 {
		p.SendBytes(frames)
		for range 64 {
			if a := p.Receive(); a.Code != 0 || len(a.Body) == 0 {
				b.Fatalf("%+v", a)
			}
		}
	}
}

// BenchmarkRoute is the table's part of it, and that of an answer that has to be made again.
func BenchmarkRoute(b *testing.B) {
	r, _ := newTable()
	r.register(broker("broker-a", "10.0.0.1:10911", 0), topics(1, 6, "T"), new(fakeLink))
	b.Run("kept", func(b *testing.B) {
		for b.Loop() {
			r.route("T", true, "")
		}
	})
	b.Run("made", func(b *testing.B) {
		for b.Loop() {
			r.mu.topics["T"].changedLocked()
			r.route("T", true, "")
		}
	})
}

// BenchmarkRegister is the registration of 10,000 topics, decoding included, of which none has changed.
func BenchmarkRegister(b *testing.B) {
	s, err := New(testConfig(b.TempDir()), noLog, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	names := make([]string, 10000)
	for i := range names {
		names[i] = fmt.Sprintf("topic-%05d", i)
	}
	data, err := body.EncodeRegister(topics(1, 6, names...), false)
	if err != nil {
		b.Fatal(err)
	}
	l := new(fakeLink)
	b.SetBytes(int64(len(data)))
	b.ResetTimer()
	for range b.N {
		decoded, err := body.DecodeRegister(data, false)
		if err != nil {
			b.Fatal(err)
		}
		s.routes.register(broker("broker-a", "A:1", 0), decoded, l)
	}
}
