//go:build conformance

package sql92

import (
	"encoding/json"
	"flag"
	"os"
	"strconv"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// patience bounds the wait for an answer that must come. A JVM that compiles while it answers needs some.
const patience = 15 * time.Second

// queueFile is how many entries a file of a consume queue has: no pull looks beyond one.
const queueFile = 1100

// server has one broker that serves SQL92.
var server *target.Target

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(target.RunMain(m, target.Options{Brokers: []target.BrokerOptions{{Conf: map[string]string{
		"enablePropertyFilter": "true", "filterSupportRetry": "true", "mappedFileSizeConsumeQueue": strconv.Itoa(queueFile * 20),
	}}}}, func(t *target.Target) { server = t }))
}

// session is a connection to the broker, as one client has it.
type session struct {
	*testing.T
	*wire.Conn
}

func dial(t *testing.T) session { return dialTo(t, server.Brokers[0].Addr) }

func dialTo(t *testing.T, addr string) session {
	t.Helper()
	c, err := wire.Dial(addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return session{t, c}
}

// ask makes a call that must be answered.
func (s session) ask(f *wire.Frame) *wire.Frame {
	s.Helper()
	a, err := s.Call(f, patience)
	if err != nil {
		s.Fatalf("request %d: %v", f.Code, err)
	}
	return a
}

// done makes a call that must succeed.
func (s session) done(f *wire.Frame) *wire.Frame {
	s.Helper()
	a := s.ask(f)
	if a.Code != 0 {
		s.Fatalf("request %d %q: %d %s", f.Code, f.Ext, a.Code, a.Remark)
	}
	return a
}

func (s session) topic(name string, queues int) string {
	s.Helper()
	n := strconv.Itoa(queues)
	s.done(wire.Request(17, "topic", name, "defaultTopic", "TBW102", "readQueueNums", n, "writeQueueNums", n, "perm", "6",
		"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"))
	return name
}

func (s session) send(topic, properties, body string) *wire.Frame {
	s.Helper()
	return s.done(wire.Request(310, "a", "P-sql", "b", topic, "c", "TBW102", "d", "4", "e", "0", "f", "0",
		"g", strconv.FormatInt(time.Now().UnixMilli(), 10), "h", "0", "i", properties, "j", "0", "k", "false", "m", "false").WithBody([]byte(body)))
}

// stored waits until a queue 0 has so many messages.
func (s session) stored(topic string, n int64) {
	s.Helper()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(patience); ; <-every.C {
		if s.done(wire.Request(30, "topic", topic, "queueId", "0")).Ext["offset"] == strconv.FormatInt(n, 10) {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("%s has not %d messages", topic, n)
		}
	}
}

// check asks whether an expression can be served (CHECK_CLIENT_CONFIG).
func (s session) check(topic, expression string) (code int, remark string) {
	s.Helper()
	text, err := json.Marshal(expression)
	if err != nil {
		s.Fatal(err)
	}
	a := s.ask(wire.Request(46).WithBody([]byte(`{"clientId":"c","group":"G-sql","namespace":"","subscriptionData":{"classFilterMode":false,` +
		`"codeSet":[],"expressionType":"SQL92","subString":` + string(text) + `,"subVersion":1,"tagsSet":[],"topic":"` + topic + `"}}`)))
	return a.Code, a.Remark
}

// pull asks for messages of queue 0 with the expression in the request.
func pull(group, topic, expression string, offset int64) *wire.Frame {
	return wire.Request(11, "consumerGroup", group, "topic", topic, "queueId", "0", "queueOffset", strconv.FormatInt(offset, 10), "maxMsgNums", "32",
		"sysFlag", "4", "commitOffset", "0", "suspendTimeoutMillis", "0", "subscription", expression, "subVersion", "0", "expressionType", "SQL92")
}

// pullAll returns the bodies of all messages of queue 0 up to an offset that an expression takes.
func (s session) pullAll(topic, expression string, end int) (bodies []string) {
	s.Helper()
	for offset := int64(0); offset < int64(end); {
		a := s.ask(pull("G-sql", topic, expression, offset))
		if a.Code != 0 && a.Code != 20 {
			s.Fatalf("%q: %d %s", expression, a.Code, a.Remark)
		}
		bodies = append(bodies, s.bodies(a)...)
		next, err := strconv.ParseInt(a.Ext["nextBeginOffset"], 10, 64)
		if err != nil || next <= offset {
			s.Fatalf("%q: next %q after %d", expression, a.Ext["nextBeginOffset"], offset)
		}
		offset = next
	}
	return bodies
}

func (s session) bodies(a *wire.Frame) (bodies []string) {
	s.Helper()
	if a.Code != 0 {
		return nil
	}
	ms, err := wire.Messages(a.Body)
	if err != nil {
		s.Fatal(err)
	}
	for _, m := range ms {
		bodies = append(bodies, string(m.Body))
	}
	return bodies
}
