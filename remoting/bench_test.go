package remoting

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/cloudwego/netpoll"
	"golang.org/x/sys/unix"

	"rocketd/protocol"
	"rocketd/protocol/header"
)

// discard is a socket that takes everything.
type discard struct{ bytes int }

func (d *discard) send(p []byte) (int, error) { d.bytes += len(p); return len(p), nil }
func (d *discard) sendWait(p []byte) error    { d.bytes += len(p); return nil }
func (d *discard) shut()                      {}
func (d *discard) narrow(bool)                {}
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
	return newConn(e, in, out), in, out
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

// BenchmarkEcho is a round trip over the loopback, connections x requests in flight on each. The load
// comes from a process of its own, so that "cpu-ns/request" is what the server alone spends.
func BenchmarkEcho(b *testing.B) {
	for _, shape := range []load{{conns: 1, depth: 1}, {conns: 64, depth: 1}, {conns: 1, depth: 64}, {conns: 64, depth: 32}} {
		b.Run(fmt.Sprintf("%dx%d", shape.conns, shape.depth), func(b *testing.B) { benchEcho(b, shape) })
	}
}

func benchEcho(b *testing.B, l load) {
	cfg := DefaultServerConfig()
	cfg.BindAddress, cfg.ListenPort = "127.0.0.1", 0
	s := NewServer(cfg, sendMux(), Events{}, slog.New(slog.DiscardHandler))
	if err := s.Start(); err != nil {
		b.Fatal(err)
	}
	defer s.Close(context.Background())
	l.addr, l.rounds = fmt.Sprintf("127.0.0.1:%d", s.Port()), max(1, b.N/(l.conns*l.depth))
	generator := exec.Command(os.Args[0])
	generator.Env = append(os.Environ(), loadVariable+"="+l.String())
	generator.Stderr = os.Stderr
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime()
	if err := generator.Run(); err != nil {
		b.Fatal(err)
	}
	requests := l.rounds * l.conns * l.depth
	b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(requests), "cpu-ns/request")
}

// cpuTime is what this process has spent.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// load is what the load generator does.
type load struct {
	addr                 string
	conns, depth, rounds int
}

// loadVariable makes the test binary a load generator.
const loadVariable = "REMOTING_BENCH_LOAD"

// String is the form in which a load is handed over.
func (l load) String() string { return fmt.Sprintf("%s %d %d %d", l.addr, l.conns, l.depth, l.rounds) }

// run sends depth requests at once on each connection and waits for their answers, rounds times.
func (l load) run() error {
	var frames []byte
	for i := range l.depth {
		frames = protocol.AppendFrame(frames, sendRequest(protocol.JSON, int32(i), 128))
	}
	errs := make(chan error, l.conns)
	for range l.conns {
		go func() { errs <- l.connection(frames) }()
	}
	var err error
	for range l.conns {
		err = errors.Join(err, <-errs)
	}
	return err
}

func (l load) connection(frames []byte) error {
	nc, err := net.Dial("tcp", l.addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	buf := make([]byte, 64<<10)
	for range l.rounds {
		if _, err := nc.Write(frames); err != nil {
			return err
		}
		for answers, have := 0, 0; answers < l.depth; {
			n, err := nc.Read(buf[have:])
			if err != nil {
				return err
			}
			have += n
			at := 0
			for have-at >= 4 && have-at >= 4+int(binary.BigEndian.Uint32(buf[at:])) {
				at += 4 + int(binary.BigEndian.Uint32(buf[at:]))
				answers++
			}
			have = copy(buf, buf[at:have])
		}
	}
	return nil
}
