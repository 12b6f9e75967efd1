package namesrv

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting/remotingtest"
)

// counted is what a route table takes, counted anew.
func counted(t *routeTable) (n int64) {
	for topic, r := range t.mu.topics {
		for name := range r.queues {
			n += queuesSize(name, topic)
		}
	}
	for cluster, names := range t.mu.clusters {
		for name := range names {
			n += clusterSize(cluster, name)
		}
	}
	for addr, r := range t.mu.live {
		n += r.size(addr)
	}
	return n
}

// ask sends a request and returns its answer.
func ask(p *remotingtest.Peer, opaque int, code protocol.RequestCode, h any, body []byte) *protocol.Command {
	req := protocol.NewRequest(code, h, body)
	req.Opaque = int32(opaque)
	return p.Ask(req)
}

// registration of a broker, with topics of these names.
func registrationOf(tb testing.TB, version int64, names ...string) []byte {
	tb.Helper()
	data, err := compat.Marshal(topics(version, 6, names...))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// TestRegistrationFloods: however brokers and topics are registered, the table stays within its limit; the flood is
// refused, with a counter, and those who were there before register and are found as before.
func TestRegistrationFloods(t *testing.T) {
	for _, test := range []struct {
		name string
		ask  func(i int) (h *header.RegisterBrokerRequest, topics []string)
	}{
		{"brokers", func(i int) (*header.RegisterBrokerRequest, []string) {
			return broker(fmt.Sprint("flood", i), fmt.Sprint("10.0.0.1:", i), 0), nil
		}},
		{"slaves", func(i int) (*header.RegisterBrokerRequest, []string) {
			return broker("flood", fmt.Sprint("10.0.0.1:", i), int64(i)), nil
		}},
		{"clusters", func(i int) (*header.RegisterBrokerRequest, []string) {
			h := broker("flood", "10.0.0.1:1", 0)
			h.ClusterName = fmt.Sprint("C", i)
			return h, nil
		}},
		{"topics", func(i int) (*header.RegisterBrokerRequest, []string) {
			names := make([]string, 20)
			for j := range names {
				names[j] = fmt.Sprintf("flood%d-%d", i, j)
			}
			return broker("flood", "10.0.0.1:1", 0), names
		}},
		{"long names", func(i int) (*header.RegisterBrokerRequest, []string) {
			return broker(strings.Repeat("x", 1000+i), fmt.Sprint("10.0.0.1:", i), 0), nil
		}},
		{"long topics", func(i int) (*header.RegisterBrokerRequest, []string) {
			return broker("flood", "10.0.0.1:1", 0), []string{fmt.Sprint(i, strings.Repeat("x", 10_000))}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := testConfig(t.TempDir())
			cfg.MaxRouteBytes = 30_000
			s, _ := start(t, cfg)
			good, flood := remotingtest.Dial(t, s.Addr()), remotingtest.Dial(t, s.Addr())
			register := func(version int64) {
				t.Helper()
				req := protocol.NewRequest(protocol.RegisterBroker, broker("good", "10.0.0.2:10911", 0), registrationOf(t, version, "T"))
				req.Version = protocol.ServerVersion
				if a := good.Ask(req); a.Code != 0 {
					t.Fatalf("the good broker: code %d, %q", a.Code, a.Remark)
				}
			}
			register(1)
			refused := int64(0)
			for i := range 200 {
				h, names := test.ask(i + 1)
				req := protocol.NewRequest(protocol.RegisterBroker, h, registrationOf(t, int64(i+2), names...))
				req.Opaque, req.Version = int32(i), protocol.ServerVersion
				a := flood.Ask(req)
				switch {
				case a.Code == 0:
				case a.Code == int32(protocol.SystemError) && (a.Remark == errRoutesFull.Error() || a.Remark == errNameLength.Error()):
					refused++
				default:
					t.Fatalf("registration %d: code %d, %q", i, a.Code, a.Remark)
				}
			}
			s.routes.mu.RLock()
			noted, there := s.routes.mu.bytes, counted(s.routes)
			s.routes.mu.RUnlock()
			if refused == 0 || s.Refusals()[0].Count != refused || noted > cfg.MaxRouteBytes || noted != there {
				t.Errorf("%d refused, %+v, %d bytes noted, %d there", refused, s.Refusals(), noted, there)
			}
			register(1)
			register(2)
			if a := ask(good, 9, protocol.GetRouteInfoByTopic, &header.GetRouteInfoRequest{Topic: "T"}, nil); a.Code != 0 || !strings.Contains(string(a.Body), "10.0.0.2:10911") {
				t.Errorf("route: code %d, %s", a.Code, a.Body)
			}
			flood.Close() // and all that it registered goes with it
			remotingtest.Eventually(t, "what the flood registered is gone", func() bool {
				s.routes.mu.RLock()
				defer s.routes.mu.RUnlock()
				return len(s.routes.mu.live) == 1 && s.routes.mu.bytes == counted(s.routes) && s.routes.mu.bytes < 5000
			})
		})
	}
}

// TestZipBomb: a small compressed registration that would become a huge one is refused before it is that.
func TestZipBomb(t *testing.T) {
	s, _ := start(t, testConfig(t.TempDir()))
	p := remotingtest.Dial(t, s.Addr())
	for _, test := range []struct {
		name string
		make func() []byte
	}{
		{"spaces", func() []byte { return bytes.Repeat([]byte{' '}, 66<<20) }},
		{"a text that says it is long", func() []byte { return append([]byte{0x7f, 0xff, 0xff, 0xff}, make([]byte, 66<<20)...) }},
		{"very many topics", func() []byte {
			b := binary.BigEndian.AppendUint32(nil, 2)
			b = binary.BigEndian.AppendUint32(append(b, "{}"...), 1<<31-1)
			one := append([]byte{0, 0, 0, 18}, "T 8 8 6 SINGLE_TAG"...)
			return append(b, bytes.Repeat(one, 10<<20/len(one))...)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var bomb bytes.Buffer
			z, err := zlib.NewWriterLevel(&bomb, zlib.BestSpeed)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := z.Write(test.make()); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			if bomb.Len() > 1<<20 {
				t.Fatalf("no bomb: %d bytes", bomb.Len())
			}
			h := broker("bomb", "10.0.0.1:1", 0)
			h.Compressed = true
			req := protocol.NewRequest(protocol.RegisterBroker, h, bomb.Bytes())
			req.Version = protocol.ServerVersion
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if a := p.Ask(req); a.Code != int32(protocol.SystemError) {
				t.Errorf("code %d, %q", a.Code, a.Remark)
			}
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 192<<20 {
				t.Errorf("%d bytes became %d", bomb.Len(), grown)
			}
			if s.routes.mu.live["10.0.0.1:1"] != nil {
				t.Error("it is registered")
			}
		})
	}
}

// TestKVFlood: the KV configuration stays so small that brokers can be told all of it.
func TestKVFlood(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.MaxKvConfigBytes = 10_000
	s, _ := start(t, cfg)
	p := remotingtest.Dial(t, s.Addr())
	put := func(namespace, key, value string) *protocol.Command {
		return ask(p, 1, protocol.PutKVConfig, &header.PutKVConfigRequest{Namespace: namespace, Key: key, Value: value}, nil)
	}
	good := 0
	for i := range 100 {
		a := put(fmt.Sprint("N", i%7), fmt.Sprint("k", i), strings.Repeat("\x01", 100))
		if full := a.Code == int32(protocol.SystemError) && a.Remark == "the KV configuration is as large as maxKvConfigBytes allows"; a.Code != 0 && !full {
			t.Fatalf("put %d: code %d, %q", i, a.Code, a.Remark)
		} else if !full {
			good++
		}
	}
	text, err := s.kv.encode()
	if err != nil || len(text) > int(cfg.MaxKvConfigBytes) || good < 10 || s.Refusals()[1].Count != int64(100-good) {
		t.Errorf("%d bytes, %v, %d taken, %+v", len(text), err, good, s.Refusals())
	}
	// A shorter value always has room, and what is deleted makes some.
	if a := put("N0", "k0", "short"); a.Code != 0 {
		t.Errorf("a shorter value: %d, %q", a.Code, a.Remark)
	}
	for i := range 100 {
		ask(p, 1, protocol.DeleteKVConfig, &header.DeleteKVConfigRequest{Namespace: fmt.Sprint("N", i%7), Key: fmt.Sprint("k", i)}, nil)
	}
	if a := put("N1", "k", strings.Repeat("v", 9_000)); a.Code != 0 {
		t.Errorf("after deletions: %d, %q", a.Code, a.Remark)
	}
}

// TestLargeRegistrations: brokers with very many topics that register all at once all are registered, one after the other.
func TestLargeRegistrations(t *testing.T) {
	s, _ := start(t, testConfig(t.TempDir()))
	names := make([]string, 12_000)
	for i := range names {
		names[i] = fmt.Sprintf("topic-%06d", i)
	}
	data := registrationOf(t, 1, names...)
	if len(data) <= largeRegistration {
		t.Fatalf("%d bytes are not large", len(data))
	}
	const n = 8
	var peers [n]*remotingtest.Peer
	for i := range n {
		peers[i] = remotingtest.Dial(t, s.Addr())
		req := protocol.NewRequest(protocol.RegisterBroker, broker(fmt.Sprint("b", i), fmt.Sprint("10.0.0.1:", i), 0), data)
		req.Version = protocol.ServerVersion
		peers[i].Send(req)
	}
	for i, p := range peers {
		if a := p.Receive(); a.Code != 0 {
			t.Errorf("broker %d: code %d, %q", i, a.Code, a.Remark)
		}
	}
	if st := s.PortStats(); st.Accepted != n || st.Panics != 0 {
		t.Errorf("the port counts %+v", st)
	}
	if len(s.turns) != 0 {
		t.Errorf("%d turns are taken", len(s.turns))
	}
}
