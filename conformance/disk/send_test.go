//go:build conformance

package disk

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rocketd/conformance/wire"
)

// maxProperties is the longest properties text that a record can have.
const maxProperties = 32767

// compressed is the sysFlag of a compressed body, by the kind of compression; the first is that of old clients.
var compressed = []int32{0x1, 0x301, 0x101, 0x201}

// sender sends the messages of one era.
type sender struct {
	*server
	l    *ledger
	era  int
	made int // messages made in this era
	wait []outgoing
	// oneByOne: each answer is waited for, so that all servers store in the same order.
	oneByOne bool
}

// outgoing is a request that will store messages.
type outgoing struct {
	frame    *wire.Frame
	messages []*message
	v6       bool
	refusal  int // the code that the answer must have, 0: the messages must be stored
}

// uniqKey makes the next message's unique key, shaped like those of the Java client.
func (s *sender) uniqKey() string {
	s.made++
	return fmt.Sprintf("7F0000010D15%08X%08X%04X", s.era+1, s.made, s.made&0xFFFF)
}

// frame is a send as the Java client makes it.
func (s *sender) frame(p place, m *message, properties string) *wire.Frame {
	return wire.Request(310, "a", "DiskProducer", "b", p.topic, "c", "TBW102", "d", "4", "e", strconv.Itoa(int(p.queueId)),
		"f", strconv.Itoa(int(m.sysFlag)), "g", strconv.FormatInt(m.born, 10), "h", strconv.Itoa(int(m.flag)), "i", properties,
		"j", strconv.Itoa(int(m.reconsume)), "k", "false", "m", "false").WithBody(m.body)
}

// message queues a message; the pairs are its properties beside UNIQ_KEY. Every third comes from an IPv6 client.
func (s *sender) message(p place, body string, pairs ...string) *outgoing {
	pairs = append(pairs, "UNIQ_KEY", s.uniqKey())
	text := wire.Properties(pairs...)
	m := &message{topic: p.topic, queueId: p.queueId, body: []byte(body), properties: parsed(text), flag: int32(s.made), born: millis()}
	f := s.frame(p, m, text)
	if level := m.properties["DELAY"]; level != "" {
		n, err := strconv.Atoi(level)
		if err != nil {
			s.t.Fatal(err)
		}
		m.topic, m.queueId = scheduleTopic, int32(n-1)
		m.properties["REAL_TOPIC"], m.properties["REAL_QID"] = p.topic, strconv.Itoa(int(p.queueId))
	} else {
		delete(m.properties, "WAIT")
	}
	s.wait = append(s.wait, outgoing{frame: f, messages: []*message{m}, v6: s.v6 != nil && s.made%3 == 0})
	return &s.wait[len(s.wait)-1]
}

// set changes the flags of a queued message.
func (o *outgoing) set(sysFlag int32) {
	o.messages[0].sysFlag = sysFlag
	o.frame.Set("f", strconv.Itoa(int(sysFlag)))
}

// batchOf queues a batch. Each element has properties of its own, and those of the request.
func (s *sender) batchOf(p place, bodies ...string) {
	o := outgoing{v6: s.v6 != nil && s.made%2 == 0}
	born := millis()
	var body []byte
	for i, b := range bodies {
		text := wire.Properties("KEYS", fmt.Sprintf("batch-%d-%d", s.era, s.made), "TAGS", "Batch"+strconv.Itoa(i), "UNIQ_KEY", s.uniqKey(), "WAIT", "true")
		m := &message{topic: p.topic, queueId: p.queueId, body: []byte(b), properties: parsed(text), born: born}
		o.messages = append(o.messages, m)
		body = append(body, wire.Batch(text, m.body)...)
	}
	o.frame = s.frame(p, o.messages[0], wire.Properties("WAIT", "true")).Set("m", "true").WithBody(body)
	o.frame.Code = 320
	s.wait = append(s.wait, o)
}

// send sends what is queued, many at a time, and notes the answers.
func (s *sender) send() {
	s.t.Helper()
	window := 32
	if s.oneByOne {
		window = 1
	}
	for some := range slices.Chunk(s.wait, window) {
		pending := make([]*wire.Pending, len(some))
		for i, o := range some {
			var err error
			if pending[i], err = s.submit(o); err != nil {
				s.t.Fatalf("send to %s: %v", o.messages[0].topic, err)
			}
		}
		for i, o := range some {
			answer, err := pending[i].Wait(patience)
			if err != nil {
				s.t.Fatalf("send to %s: %v", o.messages[0].topic, err)
			}
			s.answered(o, answer)
		}
	}
	s.wait = nil
}

// submit sends a request without waiting for the answer.
func (s *sender) submit(o outgoing) (*wire.Pending, error) {
	s.t.Helper()
	if o.refusal == 0 {
		for _, m := range o.messages {
			m.offset = -1
			s.l.expect(s.t, m)
		}
	}
	if o.v6 {
		return s.v6.Send(o.frame)
	}
	return s.Conn.Send(o.frame)
}

func (s *sender) answered(o outgoing, answer *wire.Frame) {
	s.t.Helper()
	if answer.Code != o.refusal {
		s.t.Errorf("send to %s: %d %s, want code %d", o.messages[0].topic, answer.Code, answer.Remark, o.refusal)
		return
	}
	if o.refusal != 0 {
		return
	}
	offset, err := strconv.ParseInt(answer.Ext["queueOffset"], 10, 64)
	ids := strings.Split(answer.Ext["msgId"], ",")
	if err != nil || len(ids) != len(o.messages) {
		s.t.Errorf("send to %s: answer %v", o.messages[0].topic, answer.Ext)
		return
	}
	for i, m := range o.messages {
		m.acked, m.offset, m.msgId = true, offset+int64(i), ids[i]
	}
}

// everyKind queues n messages of each kind that a queue can hold, spread over the queues of a topic.
func (s *sender) everyKind(topic string, queues, n int) {
	q := func() place { return place{topic, int32(s.made % queues)} }
	for i := range n {
		s.message(q(), fmt.Sprintf("plain %d %d", s.era, i), "TAGS", "Tag"+strconv.Itoa(i%5), "WAIT", "true")
		s.message(q(), fmt.Sprintf("keys %d %d", s.era, i), "TAGS", "Tag"+strconv.Itoa(i%5), "KEYS", fmt.Sprintf("a-%d-%d b-%d-%d common", s.era, i, s.era, i),
			"shoe", "sïze \u00e9\u4e2d\U0001F600", "ключ", "значение")
		s.message(q(), "", "TAGS", "Empty", "KEYS", fmt.Sprintf("empty-%d-%d", s.era, i))
		s.batchOf(q(), fmt.Sprintf("batch %d %d", s.era, i), "", strings.Repeat("b", 3000))
		s.message(q(), zipped(strings.Repeat(fmt.Sprintf("compressed %d %d ", s.era, i), 500))).set(compressed[i%4])
	}
	// Near the end of a small file: records of which two fit, and not a third.
	for i := range 3 {
		s.message(q(), strings.Repeat(string(rune('A'+i)), 30_000), "KEYS", fmt.Sprintf("large-%d-%d", s.era, i))
	}
	bare := s.message(q(), fmt.Sprintf("no properties %d %d %s", s.era, s.made, topic))
	bare.frame.Set("i", "")
	bare.messages[0].properties = parsed("")
	s.longest(q(), 0)
	s.longest(q(), 1).refusal = 13
}

// longest queues a message whose stored properties are as long as they can be, and more by some bytes.
func (s *sender) longest(p place, more int) *outgoing {
	size := len(wire.Properties("UNIQ_KEY", s.uniqKey(), "CLUSTER", "DefaultCluster", "pad", ""))
	s.made--
	return s.message(p, "longest properties", "pad", strings.Repeat("x", maxProperties-size+more))
}

func zipped(text string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		panic(err) // a buffer takes everything
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

// delayed queues messages for the delay levels.
func (s *sender) delayed(p place, levels ...string) {
	for _, level := range levels {
		s.message(p, fmt.Sprintf("delayed %d %s", s.era, level), "DELAY", level, "TAGS", "Late", "KEYS", fmt.Sprintf("delay-%d-%s-%d", s.era, level, s.made), "WAIT", "true")
	}
}

// sendBack gives a message of this era back for a group: to be tried again after the level's delay, or, with a level of
// -1, as a dead letter.
func (s *sender) sendBack(m *message, group string, level int) {
	s.t.Helper()
	if m.read.Message == nil {
		s.t.Fatalf("%s was not read yet", m.id())
	}
	asked, back := strconv.Itoa(level), *m
	back.properties = parsed(m.read.PropertiesText, "RETRY_TOPIC", m.topic, "ORIGIN_MESSAGE_ID", m.msgId, "WAIT", "false", "DELAY", strconv.Itoa(max(0, level)))
	back.topic, back.queueId = "%DLQ%"+group, 0
	if level >= 0 {
		if level == 0 {
			level = 3 + int(m.reconsume)
		}
		back.topic, back.queueId = scheduleTopic, int32(level-1)
		back.properties["DELAY"] = strconv.Itoa(level)
		back.properties["REAL_TOPIC"], back.properties["REAL_QID"] = "%RETRY%"+group, "0"
	}
	back.reconsume++
	back.read, back.offset, back.msgId = stored{}, -1, ""
	s.l.expect(s.t, &back)
	s.Done(wire.Request(36, "group", group, "offset", strconv.FormatInt(m.read.PhyOffset, 10), "delayLevel", asked, "originMsgId", m.msgId,
		"originTopic", m.topic, "unitMode", "false", "maxReconsumeTimes", "16"))
	back.acked = true
}
