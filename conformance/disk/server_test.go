//go:build conformance

package disk

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
	"rocketd/conformance/wire/wiretest"
)

// patience is how long anything may take that has to happen.
const patience = 40 * time.Second

// long tells whether the long form runs.
func long() bool { return os.Getenv("CONFORMANCE_LONG") != "" }

// server is a running broker as a raw client sees it.
type server struct {
	*target.Broker
	wiretest.Asker // by IPv4
	t              *testing.T
	v6             *wire.Conn // nil where the machine has no IPv6
}

// connect dials a broker that has just started.
func connect(t *testing.T, b *target.Broker) *server {
	t.Helper()
	s := &server{Broker: b, Asker: wiretest.Asker{T: t, Patience: patience}, t: t}
	var err error
	if s.Conn, err = wire.Dial(b.Addr, nil); err != nil {
		t.Fatal(err)
	}
	if hasIPv6() {
		if s.v6, err = wire.Dial(net.JoinHostPort("::1", strconv.Itoa(b.Port())), nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *server) hangUp() {
	s.Conn.Close()
	if s.v6 != nil {
		s.v6.Close()
	}
}

func hasIPv6() bool {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func (s *server) minOffset(p place) int64 { return s.Number("offset", p.request(31)) }
func (s *server) maxOffset(p place) int64 { return s.Number("offset", p.request(30)) }

// place is one queue.
type place struct {
	topic   string
	queueId int32
}

func (p place) String() string { return fmt.Sprintf("%s %d", p.topic, p.queueId) }

func (p place) request(code int) *wire.Frame {
	return wire.Request(code, "topic", p.topic, "queueId", strconv.Itoa(int(p.queueId)))
}

// stored is a message as a server returns it, with its bytes.
type stored struct {
	*wire.Message
	raw []byte
}

// split decodes the messages of a body.
func split(t *testing.T, body []byte) []stored {
	t.Helper()
	ms, err := wire.Messages(body)
	if err != nil {
		t.Fatal(err)
	}
	var all []stored
	for _, m := range ms {
		all = append(all, stored{m, body[:m.Size:m.Size]})
		body = body[m.Size:]
	}
	return all
}

// Codes of a pull's answer.
const (
	pullNotFound  = 19
	pullRetry     = 20
	topicNotExist = 17
)

func pull(p place, offset int64) *wire.Frame {
	return wire.Request(11, "consumerGroup", "DiskReader", "topic", p.topic, "queueId", strconv.Itoa(int(p.queueId)),
		"queueOffset", strconv.FormatInt(offset, 10), "maxMsgNums", "32", "sysFlag", "4", "commitOffset", "0",
		"suspendTimeoutMillis", "0", "subscription", "*", "subVersion", "0", "expressionType", "TAG")
}

// read pulls all messages of a queue from an offset on. Each must have the offset that it is pulled at.
func (s *server) read(p place, from int64) []stored {
	s.t.Helper()
	var all []stored
	for offset := from; ; {
		answer := s.Ask(pull(p, offset))
		switch answer.Code {
		case 0:
			for _, m := range split(s.t, answer.Body) {
				if m.QueueOffset != offset || m.Topic != p.topic || m.QueueId != p.queueId {
					s.t.Fatalf("%s offset %d: the pull gives the message of %s %d offset %d", p, offset, m.Topic, m.QueueId, m.QueueOffset)
				}
				all = append(all, m)
				offset++
			}
		case pullRetry:
		case pullNotFound:
			return all
		default:
			s.t.Fatalf("pull of %s offset %d: %d %s", p, offset, answer.Code, answer.Remark)
		}
	}
}

// table asks for a table in JSON and returns the member of that name.
func (s *server) table(code int, member string) map[string]any {
	s.t.Helper()
	v, err := wire.ParseJSON(s.Done(wire.Request(code)).Body)
	if err != nil {
		s.t.Fatal(err)
	}
	all, _ := v.(map[string]any)
	m, ok := all[member].(map[string]any)
	if !ok {
		s.t.Fatalf("request %d: no %s in the answer", code, member)
	}
	return m
}

// until waits for a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	wiretest.Until(t, patience, what, condition)
}

func millis() int64 { return time.Now().UnixMilli() }
