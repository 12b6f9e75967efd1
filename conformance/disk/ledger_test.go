//go:build conformance

package disk

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"maps"
	"strconv"
	"testing"

	"rocketd/conformance/wire"
)

const scheduleTopic = "SCHEDULE_TOPIC_XXXX"

// delays are the default delay levels that the cases use, in ms.
var delays = map[string]int64{"1": 1000, "2": 5000, "3": 10_000, "4": 30_000, "18": 2 * 3600 * 1000}

// hostFlags are the bits of a sysFlag that say how long the hosts are.
const hostFlags = 0x30

// message is one message that must, or may, be stored.
type message struct {
	topic      string
	queueId    int32 // -1: any
	body       []byte
	properties map[string]string
	flag       int32
	sysFlag    int32 // without hostFlags
	reconsume  int32
	prepared   int64 // preparedTransactionOffset
	born       int64

	// What the answer said. acked: it must be stored; without, it may be.
	acked  bool
	offset int64 // -1: not said
	msgId  string

	// A copy that the broker makes of a delayed message: when it is due, and the waiting record.
	due    int64
	origin *stored

	read stored // as it was read first
}

// key tells the messages of a topic apart.
func key(properties map[string]string, body []byte) string {
	if k := properties["UNIQ_KEY"]; k != "" {
		return k
	}
	return fmt.Sprintf("%.40q", body)
}

func (m *message) id() string { return m.topic + "/" + key(m.properties, m.body) }

// ledger is what must be in a store directory.
type ledger struct {
	eras    []*era
	topics  map[string]int        // topic → queues
	queues  map[place][]*message  // read once at least: index is the queue offset (nothing is ever deleted)
	open    map[string]*message   // by id: sent, or due, and not read yet
	copies  map[string][]*message // by id: the delivered copies of delayed messages
	offsets map[string]int64      // "group topic queue" → committed offset
	units   int                   // of consumequeue_ext, to which entries led when the files were checked last
}

func newLedger() *ledger {
	return &ledger{
		topics: map[string]int{scheduleTopic: 18}, queues: map[place][]*message{}, open: map[string]*message{},
		copies: map[string][]*message{}, offsets: map[string]int64{},
	}
}

// expect notes a message that was, or will be, sent.
func (l *ledger) expect(t *testing.T, m *message) {
	t.Helper()
	if l.open[m.id()] != nil {
		t.Fatalf("two messages with the id %s", m.id())
	}
	l.open[m.id()] = m
}

func (l *ledger) places() []place {
	var all []place
	for topic, n := range l.topics {
		for q := range n {
			all = append(all, place{topic, int32(q)})
		}
	}
	return all
}

// forget drops all that is known of a deleted topic.
func (l *ledger) forget(topic string) {
	for q := range l.topics[topic] {
		delete(l.queues, place{topic, int32(q)})
	}
	delete(l.topics, topic)
	maps.DeleteFunc(l.open, func(_ string, m *message) bool { return m.topic == topic })
}

// readAgain reads every queue from its start: what was read before must be the same.
func (l *ledger) readAgain(s *server) {
	s.t.Helper()
	for _, p := range l.places() {
		if got := s.minOffset(p); got != 0 {
			s.t.Errorf("%s: min offset %d", p, got)
		}
		all := s.read(p, 0)
		if known := len(l.queues[p]); len(all) < known {
			s.t.Errorf("%s: %d of %d messages are left", p, len(all), known)
		}
		for i, m := range all {
			l.see(s, p, int64(i), m)
		}
		if got := s.maxOffset(p); got < int64(len(all)) || l.still(p) && got != int64(len(all)) {
			s.t.Errorf("%s: max offset %d, %d messages", p, got, len(all))
		}
	}
}

// still tells whether nothing can arrive in a queue meanwhile.
func (l *ledger) still(p place) bool {
	for _, m := range l.open {
		if m.topic == p.topic {
			return false
		}
	}
	return true
}

// settle reads new messages until all acknowledged ones, and all copies that are due by now, are there.
func (l *ledger) settle(s *server) {
	s.t.Helper()
	now := millis()
	until(s.t, "everything acknowledged can be read", func() bool {
		l.readNew(s, l.places())
		missing := l.missing(now)
		return len(missing) == 0 || s.t.Failed()
	})
	if missing := l.missing(now); len(missing) > 0 {
		s.t.Fatalf("%d messages are missing, the first: %s", len(missing), missing[0])
	}
}

func (l *ledger) readNew(s *server, places []place) {
	s.t.Helper()
	for _, p := range places {
		from := int64(len(l.queues[p]))
		for i, m := range s.read(p, from) {
			l.see(s, p, from+int64(i), m)
		}
	}
}

// missing lists what must be readable at a time and was not read.
func (l *ledger) missing(now int64) []string {
	var ids []string
	for id, m := range l.open {
		if m.acked && m.due <= now {
			ids = append(ids, fmt.Sprintf("%s (queue %d, offset %d)", id, m.queueId, m.offset))
		}
	}
	return ids
}

// dropUnacknowledged forgets what was never acknowledged and is not there after the server's end.
func (l *ledger) dropUnacknowledged() (dropped int) {
	before := len(l.open)
	maps.DeleteFunc(l.open, func(_ string, m *message) bool { return !m.acked })
	return before - len(l.open)
}

// see checks a message that was read at a place.
func (l *ledger) see(s *server, p place, offset int64, got stored) {
	t := s.t
	t.Helper()
	q := l.queues[p]
	if offset < int64(len(q)) {
		if old := q[offset].read; !bytes.Equal(old.raw, got.raw) {
			t.Errorf("%s offset %d has changed:\n%s\nfirst read:\n%s", p, offset, describe(got), describe(old))
		}
		return
	}
	id := p.topic + "/" + key(got.Properties, got.Body)
	want := l.open[id]
	if level, err := strconv.Atoi(got.Properties["DELAY"]); want == nil && err == nil && level > 0 && p.topic != scheduleTopic {
		// The waiting message may have come, and gone out, since its queue was read.
		l.readNew(s, []place{{scheduleTopic, int32(level - 1)}})
		want = l.open[id]
	}
	if want == nil {
		if want = l.copyAgain(id); want == nil {
			t.Fatalf("%s offset %d: nobody has sent this, or it was there before:\n%s", p, offset, describe(got))
		}
	}
	delete(l.open, id)
	want.compare(t, p, got)
	want.read = got
	l.queues[p] = append(q, want)
	if want.origin != nil {
		l.copies[id] = append(l.copies[id], want)
	}
	if p.topic == scheduleTopic {
		l.await(t, p, got)
	}
}

// await expects the copy of a delayed message that waits.
func (l *ledger) await(t *testing.T, p place, waiting stored) {
	t.Helper()
	delay, ok := delays[strconv.Itoa(int(p.queueId)+1)]
	queueId, err := strconv.ParseInt(waiting.Properties["REAL_QID"], 10, 32)
	if !ok || err != nil {
		t.Fatalf("%s: %s", p, describe(waiting))
	}
	l.expect(t, &message{
		topic: waiting.Properties["REAL_TOPIC"], queueId: int32(queueId), body: waiting.Body, properties: waiting.Properties,
		flag: waiting.Flag, sysFlag: waiting.SysFlag &^ hostFlags, reconsume: waiting.ReconsumeTimes, born: waiting.BornTimestamp,
		acked: true, offset: -1, due: waiting.StoreTimestamp + delay, origin: &waiting,
	})
}

// copyAgain allows a second copy of a delayed message when the server was killed after it had made one: it had no
// time to say how far it was. The official broker says so every ten seconds.
func (l *ledger) copyAgain(id string) *message {
	made := l.copies[id]
	if len(made) == 0 {
		return nil
	}
	last := made[len(made)-1]
	for _, e := range l.eras {
		if e.kill && e.start <= last.read.StoreTimestamp && last.read.StoreTimestamp <= e.end {
			again := *last
			again.offset = -1
			return &again
		}
	}
	return nil
}

// compare checks a message when it is read for the first time.
func (m *message) compare(t *testing.T, p place, got stored) {
	t.Helper()
	var wrong []string
	check := func(what string, ok bool) {
		if !ok {
			wrong = append(wrong, what)
		}
	}
	check("queue id", m.queueId < 0 || m.queueId == got.QueueId)
	check("queue offset", m.offset < 0 || m.offset == got.QueueOffset)
	check("message id", m.msgId == "" || m.msgId == got.MsgId())
	check("body", bytes.Equal(m.body, got.Body))
	check("CRC", got.BodyCRC == crc32.ChecksumIEEE(m.body)&0x7FFFFFFF)
	check("properties", maps.Equal(m.properties, got.Properties))
	check("flag", m.flag == got.Flag)
	check("sysFlag", m.sysFlag == got.SysFlag&^hostFlags)
	check("reconsumeTimes", m.reconsume == got.ReconsumeTimes)
	check("preparedTransactionOffset", m.prepared == got.PreparedTransactionOffset)
	check("bornTimestamp", m.born == got.BornTimestamp)
	if m.origin != nil {
		check("storeHost of the waiting message", m.origin.StoreHost == got.StoreHost)
		check("bornHost of the waiting message", m.origin.BornHost == got.BornHost)
		check("delivered too early", got.StoreTimestamp >= m.due)
	}
	if wrong != nil {
		t.Errorf("%s: wrong %q\n%s\nwant queue %d offset %d id %s flag %d sysFlag %#x reconsumeTimes %d born %d properties %q", p, wrong, describe(got),
			m.queueId, m.offset, m.msgId, m.flag, m.sysFlag, m.reconsume, m.born, m.properties)
	}
}

func describe(m stored) string {
	return fmt.Sprintf("queue %d offset %d id %s phyOffset %d flag %d sysFlag %#x reconsumeTimes %d prepared %d born %d %s stored %d %s crc %08x body (%d) %.60q properties (%d) %.400q",
		m.QueueId, m.QueueOffset, m.MsgId(), m.PhyOffset, m.Flag, m.SysFlag, m.ReconsumeTimes, m.PreparedTransactionOffset, m.BornTimestamp, m.BornHost,
		m.StoreTimestamp, m.StoreHost, m.BodyCRC, len(m.Body), m.Body, len(m.PropertiesText), m.PropertiesText)
}

// parsed are properties as the broker stores a message's: with its cluster.
func parsed(text string, more ...string) map[string]string {
	p := wire.ParseProperties(text)
	p["CLUSTER"] = "DefaultCluster"
	for i := 0; i+1 < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	return p
}
