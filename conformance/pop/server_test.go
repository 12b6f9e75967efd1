//go:build conformance

package pop

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// patience bounds the wait for an answer that must come, and comeback for a message that comes again: the official
// broker looks at its checkpoints some seconds after their time, later on a busy machine.
const (
	patience = 30 * time.Second
	comeback = 90 * time.Second
)

var server *target.Target

func TestMain(m *testing.M) {
	flag.Parse()
	kind, err := target.Selected5()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(target.RunMain(m, target.Options{Kind: kind}, func(t *target.Target) { server = t }))
}

// session is a client's connection to the broker, with a topic and a group of its own.
type session struct {
	*testing.T
	*wire.Conn
	topic, group string
	broker       *target.Broker
	sent         map[int]int // messages of each queue
}

// open connects and creates a topic of queues queues, and a group.
func open(t *testing.T, name string, queues int) *session {
	t.Helper()
	return openAt(t, server.Brokers[0], name, queues)
}

func openAt(t *testing.T, b *target.Broker, name string, queues int) *session {
	t.Helper()
	s := &session{T: t, topic: "Pop" + name, group: "PopGroup" + name, broker: b, sent: map[int]int{}}
	s.connect()
	n := strconv.Itoa(queues)
	s.want(wire.Request(17, "topic", s.topic, "defaultTopic", "TBW102", "readQueueNums", n, "writeQueueNums", n, "perm", "6",
		"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"), 0)
	s.want(wire.Request(200).WithBody([]byte(`{"groupName":"`+s.group+`","consumeEnable":true,"consumeFromMinEnable":true,"consumeBroadcastEnable":true,"retryQueueNums":1,"retryMaxTimes":16}`)), 0)
	return s
}

func (s *session) connect() {
	s.Helper()
	c, err := wire.Dial(s.broker.Addr, nil)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(c.Close)
	s.Conn = c
}

// ask sends a request and returns the answer.
func (s *session) ask(f *wire.Frame) *wire.Frame {
	s.Helper()
	p, err := s.Send(f)
	if err != nil {
		s.Fatal(err)
	}
	a, err := p.Wait(patience)
	if err != nil {
		s.Fatalf("code %d: %v", f.Code, err)
	}
	return a
}

// want sends a request whose answer must have a code.
func (s *session) want(f *wire.Frame, code int) *wire.Frame {
	s.Helper()
	a := s.ask(f)
	if a.Code != code {
		s.Fatalf("code %d, %v: answered %d %q, want %d", f.Code, f.Ext, a.Code, a.Remark, code)
	}
	return a
}

// send stores messages of a queue, their bodies as given, and waits until they can be read.
func (s *session) send(queueId int, tag string, bodies ...string) {
	s.Helper()
	for _, body := range bodies {
		properties := []string{"UNIQ_KEY", fmt.Sprintf("%032X", body)[:32], "WAIT", "true"}
		if tag != "" {
			properties = append(properties, "TAGS", tag)
		}
		s.want(wire.Request(310, "a", "PG", "b", s.topic, "c", "TBW102", "d", "4", "e", strconv.Itoa(queueId), "f", "0",
			"g", strconv.FormatInt(time.Now().UnixMilli(), 10), "h", "7", "i", wire.Properties(properties...), "j", "0", "k", "false", "m", "false").WithBody([]byte(body)), 0)
		s.sent[queueId]++
	}
	for deadline := time.Now().Add(patience); ; {
		a := s.want(wire.Request(30, "topic", s.topic, "queueId", strconv.Itoa(queueId)), 0)
		if n, err := strconv.Atoi(a.Ext["offset"]); err == nil && n >= s.sent[queueId] {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("queue %d ends at %s after %d messages", queueId, a.Ext["offset"], s.sent[queueId])
		}
	}
}

// pop is a pop that does not wait; more are further fields.
func (s *session) pop(queueId, most int, invisible time.Duration, more ...string) *wire.Frame {
	f := wire.Request(200050, "consumerGroup", s.group, "topic", s.topic, "queueId", strconv.Itoa(queueId), "maxMsgNums", strconv.Itoa(most),
		"invisibleTime", millis(invisible), "pollTime", "0", "bornTime", strconv.FormatInt(time.Now().UnixMilli(), 10), "initMode", "0", "order", "false")
	for i := 0; i < len(more); i += 2 {
		f.Set(more[i], more[i+1])
	}
	return f
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// popped is one message with its receipt handle, as a client makes it of a pop's answer.
type popped struct {
	*wire.Message
	topic, handle string
}

// take pops once and returns what it got.
func (s *session) take(f *wire.Frame) (*wire.Frame, []popped) {
	s.Helper()
	a := s.ask(f)
	if a.Code == 210 {
		return a, nil
	}
	if a.Code != 0 {
		s.Fatalf("pop %v: %d %q", f.Ext, a.Code, a.Remark)
	}
	return a, s.messages(a)
}

func (s *session) messages(a *wire.Frame) (list []popped) {
	s.Helper()
	messages, err := wire.Messages(a.Body)
	if err != nil {
		s.Fatal(err)
	}
	starts := map[string]string{} // by flag and queue id
	for _, e := range strings.Split(a.Ext["startOffsetInfo"], ";") {
		if f := strings.Fields(e); len(f) == 3 {
			starts[f[0]+" "+f[1]] = f[2]
		}
	}
	for _, m := range messages {
		p := popped{Message: m, topic: m.Topic, handle: m.Properties["POP_CK"]}
		if p.handle == "" {
			p.handle = strings.Join([]string{starts["0 "+strconv.Itoa(int(m.QueueId))], a.Ext["popTime"], a.Ext["invisibleTime"], a.Ext["reviveQid"], "0",
				s.broker.Name, strconv.Itoa(int(m.QueueId)), strconv.FormatInt(m.QueueOffset, 10)}, " ")
		} else if strings.Fields(p.handle)[4] == "1" {
			p.topic = "%RETRY%" + s.group + "_" + m.Topic
		}
		list = append(list, p)
	}
	return list
}

// about is a request (200051, 200053) about a popped message.
func (s *session) about(code int, p popped, more ...string) *wire.Frame {
	f := wire.Request(code, "consumerGroup", s.group, "topic", p.topic, "queueId", strconv.Itoa(int(p.QueueId)), "extraInfo", p.handle,
		"offset", strconv.FormatInt(p.QueueOffset, 10))
	for i := 0; i < len(more); i += 2 {
		f.Set(more[i], more[i+1])
	}
	return f
}

// await pops until n messages have come, and returns them.
func (s *session) await(n int, within time.Duration, f func() *wire.Frame) (all []popped) {
	s.Helper()
	for deadline := time.Now().Add(within); len(all) < n; {
		if time.Now().After(deadline) {
			s.Fatalf("%d of %d messages have come", len(all), n)
		}
		_, more := s.take(f().Set("pollTime", "3000").Set("bornTime", strconv.FormatInt(time.Now().UnixMilli(), 10)))
		all = append(all, more...)
	}
	return all
}

// bodies is the bodies of messages.
func bodies(list []popped) string {
	var all []string
	for _, m := range list {
		all = append(all, string(m.Body))
	}
	return strings.Join(all, ",")
}

// fields compares some ext fields of an answer.
func (s *session) fields(a *wire.Frame, pairs ...string) {
	s.Helper()
	for i := 0; i < len(pairs); i += 2 {
		got, ok := a.Ext[pairs[i]]
		if !ok {
			got = "absent"
		}
		if got != pairs[i+1] {
			s.Errorf("%s is %q, want %q (%v)", pairs[i], got, pairs[i+1], a.Ext)
		}
	}
}

// remark compares a remark.
func (s *session) remark(a *wire.Frame, want string) {
	s.Helper()
	if a.Remark != want {
		s.Errorf("remark %q, want %q", a.Remark, want)
	}
}

// object reads an answer's body, a JSON object without oddities.
func (s *session) object(a *wire.Frame) (o map[string]any) {
	s.Helper()
	if err := json.Unmarshal(a.Body, &o); err != nil {
		s.Fatalf("%s: %v", a.Body, err)
	}
	return o
}

// saved waits until the file of offsets says where the group stands in queue 0.
func (s *session) saved(offset string) {
	s.Helper()
	want := `"` + s.topic + "@" + s.group + `":{0:` + offset + "}"
	for deadline := time.Now().Add(patience); ; {
		text, err := os.ReadFile(filepath.Join(s.broker.StoreDir, "config", "consumerOffset.json"))
		plain := strings.Join(strings.Fields(string(text)), "")
		if err == nil && strings.Contains(plain, want) {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("consumerOffset.json has no %s: %s (%v)", want, plain, err)
		}
	}
}

// stands waits until the group stands at an offset of a queue: the official broker notes it a little after the answer.
func (s *session) stands(queueId, offset string) {
	s.Helper()
	for deadline := time.Now().Add(patience); ; {
		a := s.want(wire.Request(14, "consumerGroup", s.group, "topic", s.topic, "queueId", queueId), 0)
		if a.Ext["offset"] == offset {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("the group stands at %s of queue %s, want %s", a.Ext["offset"], queueId, offset)
		}
	}
}
