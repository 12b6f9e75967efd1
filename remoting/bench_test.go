package remoting

import (
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"testing"

	"context"

	"github.com/cloudwego/netpoll"

	"rocketd/protocol"
	"rocketd/protocol/header"
)

// discard is a socket that takes everything.
type discard struct{ bytes int }

func (d *discard) send(p []byte) (int, error) { d.bytes += len(p); return len(p), nil }
func (d *discard) sendWait(p []byte) error    { d.bytes += len(p); return nil }
func (d *discard) shut()                      {}
func (d *discard) Close() error               { return nil }
func (d *discard) IsActive() bool             { return true }

// sendRequest is a SEND_MESSAGE_V2 as a stock client sends it.
func sendRequest(form protocol.SerializeType, opaque int32, body int) *Command {
	cmd := protocol.NewRequest(protocol.SendMessageV2, &header.SendMessageRequest{
		ProducerGroup: "producer-group", Topic: "TopicTest", DefaultTopic: "TBW102", DefaultTopicQueueNums: 4,
		QueueId: 3, SysFlag: 0, BornTimestamp: 1700000000000, Flag: 0,
		Properties: "UNIQ_KEY\x017F000001000118B4AAC2\x02WAIT\x01true\x02TAGS\x01TagA\x02",
	}, make([]byte, body))
	cmd.Serialize, cmd.Opaque = form, opaque
	return cmd
}

// sendMux answers sends like a broker that has stored them.
func sendMux() *Mux {
	m := NewMux(nil)
	HandleRun(m, []protocol.RequestCode{protocol.SendMessage, protocol.SendMessageV2}, func(calls []*Call, reqs []*header.SendMessageRequest) {
		for i, c := range calls {
			c.Reply(c.Success(&header.SendMessageResponse{MsgId: "7F00000100002A9F0000000000000000", QueueId: reqs[i].QueueId, QueueOffset: 1}))
		}
	})
	Handle(m, protocol.HeartBeat, Inline, func(c *Call, _ *header.SendMessageRequest) (*Command, error) {
		return c.Success(nil), nil
	})
	return m
}

func memoryConn(m *Mux) (*Conn, *netpoll.LinkBuffer, *discard) {
	e := newEndpoint(DefaultServerConfig().limits(), m, Events{}, slog.New(slog.DiscardHandler))
	in, out := netpoll.NewLinkBuffer(64<<10), &discard{}
	return &Conn{owner: e, in: in, sock: out}, in, out
}

func benchServe(b *testing.B, form protocol.SerializeType) {
	const depth = 32
	c, in, _ := memoryConn(sendMux())
	var frames []byte
	for i := range depth {
		frames = protocol.AppendFrame(frames, sendRequest(form, int32(i), 128))
	}
	b.ReportAllocs()
	for b.Loop() {
		in.WriteBinary(frames)
		in.Flush()
		c.serve()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/depth, "ns/request")
}

// BenchmarkServe is the whole way of 32 pipelined sends but for the sockets: frame, decode, bind,
// handler, encode.
func BenchmarkServe(b *testing.B) {
	b.Run("JSON", func(b *testing.B) { benchServe(b, protocol.JSON) })
	b.Run("ROCKETMQ", func(b *testing.B) { benchServe(b, protocol.Binary) })
}

// BenchmarkEcho is a round trip over the loopback: 64 connections with one request in flight each, or
// one connection with 64.
func BenchmarkEcho(b *testing.B) {
	for _, shape := range []struct{ conns, depth int }{{64, 1}, {1, 64}, {64, 32}} {
		b.Run(strconv.Itoa(shape.conns)+"x"+strconv.Itoa(shape.depth), func(b *testing.B) { benchEcho(b, shape.conns, shape.depth) })
	}
}

func benchEcho(b *testing.B, conns, depth int) {
	cfg := DefaultServerConfig()
	cfg.BindAddress, cfg.ListenPort = "127.0.0.1", 0
	s := NewServer(cfg, sendMux(), Events{}, slog.New(slog.DiscardHandler))
	if err := s.Start(); err != nil {
		b.Fatal(err)
	}
	defer s.Close(context.Background())
	var frames []byte
	for i := range depth {
		frames = protocol.AppendFrame(frames, sendRequest(protocol.JSON, int32(i), 128))
	}
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	rounds := max(1, b.N/(conns*depth))
	for range conns {
		wg.Go(func() {
			nc, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(s.Port()))
			if err != nil {
				b.Error(err)
				return
			}
			defer nc.Close()
			buf := make([]byte, 64<<10)
			for range rounds {
				if _, err := nc.Write(frames); err != nil {
					b.Error(err)
					return
				}
				for answers, have := 0, 0; answers < depth; {
					n, err := nc.Read(buf[have:])
					if err != nil && err != io.EOF {
						b.Error(err)
						return
					}
					have += n
					at := 0
					for have-at >= 4 {
						l := 4 + int(binary.BigEndian.Uint32(buf[at:]))
						if have-at < l {
							break
						}
						at += l
						answers++
					}
					have = copy(buf, buf[at:have])
				}
			}
		})
	}
	wg.Wait()
}

// TestAllocations is the budget of one request on its way from the input to the write queue: the call
// with its header, the header's text, the body, and the answer's header, which is the handler's. JSON
// adds the text of a value that has escapes.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("pools leak under the race detector")
	}
	const depth = 64
	for _, test := range []struct {
		name   string
		form   protocol.SerializeType
		code   protocol.RequestCode
		body   int
		budget float64
	}{
		{"send, JSON", protocol.JSON, protocol.SendMessageV2, 128, 5.3},
		{"send, ROCKETMQ", protocol.Binary, protocol.SendMessageV2, 128, 4.3},
		{"send without body, ROCKETMQ", protocol.Binary, protocol.SendMessageV2, 0, 3.3},
		{"inline, JSON", protocol.JSON, protocol.HeartBeat, 0, 3.3},
		{"inline, ROCKETMQ", protocol.Binary, protocol.HeartBeat, 0, 2.3},
	} {
		c, in, _ := memoryConn(sendMux())
		var b []byte
		for i := range int32(depth) {
			req := sendRequest(test.form, i, test.body)
			req.Code = int32(test.code)
			b = protocol.AppendFrame(b, req)
		}
		got := testing.AllocsPerRun(100, func() {
			in.WriteBinary(b)
			in.Flush()
			c.serve()
		}) / depth
		t.Logf("%s: %.2f allocations", test.name, got)
		if got > test.budget {
			t.Errorf("%s: %.2f allocations, budget %.2f", test.name, got, test.budget)
		}
	}
}
