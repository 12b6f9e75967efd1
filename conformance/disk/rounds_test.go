//go:build conformance

package disk

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// small makes every kind of file roll over often. messageIndexSafe: without it the official broker removes the index's
// newest file after a kill and does not make all of it again.
var small = map[string]string{
	"mappedFileSizeCommitLog":    "65536",
	"mappedFileSizeConsumeQueue": "1000",
	"maxHashSlotNum":             "500",
	"maxIndexNum":                "400",
	"messageIndexSafe":           "true",
}

// defaults are the official sizes.
var defaults = map[string]string{
	"mappedFileSizeCommitLog": strconv.Itoa(1 << 30),
	"maxHashSlotNum":          "5000000",
	"maxIndexNum":             "20000000",
	"messageIndexSafe":        "true",
}

// transactions lets the brokers look at half messages soon, which registers their topic, but never ask about one.
var transactions = map[string]string{"transactionCheckInterval": "1000", "transactionTimeOut": "3600000"}

// quickStart spares the official broker its self-made certificates, which cost seconds.
var quickStart = []string{"-Dtls.server.mode=disabled"}

// The first of all cases: small files, every kind of message, all ways of going down, IPv4 and IPv6 hosts.
func TestTurnsOnSmallFiles(t *testing.T) {
	other := target.Rocketd
	if k := selected(t); k == target.Official {
		other = k
	}
	eras := []*era{
		{kind: target.Official},
		{kind: other},
		{kind: target.Official, kill: true, v6: true},
		{kind: other, kill: true, v6: true},
		{kind: target.Official},
		{kind: other, kill: true},
		{kind: target.Official},
	}
	takeTurns(t, eras, small, 8)
}

// Files of the official sizes, which are sparse.
func TestTurnsOnDefaultSizes(t *testing.T) {
	other := target.Rocketd
	if k := selected(t); k == target.Official {
		other = k
	}
	eras := []*era{{kind: other}, {kind: target.Official, kill: true}, {kind: other}}
	if long() {
		eras = append(eras, &era{kind: target.Official}, &era{kind: other, kill: true}, &era{kind: target.Official})
	}
	takeTurns(t, eras, defaults, 4)
}

func selected(t *testing.T) target.Kind {
	t.Helper()
	k, err := target.Selected()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newTurns starts the first server on a new directory.
func newTurns(t *testing.T, eras []*era, conf map[string]string, scale int) *turns {
	t.Helper()
	if os.Getenv("CONFORMANCE_SKIP_JAVA") == "1" {
		t.Skip("CONFORMANCE_SKIP_JAVA=1: THE WAY FROM AND TO THE OFFICIAL BROKER IS NOT TESTED")
	}
	all := map[string]string{"mappedFileSizeConsumeQueue": "6000000", "mappedFileSizeConsumeQueueExt": strconv.Itoa(48 << 20)}
	maps.Copy(all, transactions)
	maps.Copy(all, conf)
	c := target.Start(t, target.Options{Kind: target.Rocketd, Brokers: []target.BrokerOptions{{Kind: eras[0].kind, Conf: all, JVM: quickStart}}})
	return &turns{t: t, target: c, broker: c.Brokers[0], l: newLedger(), scale: scale, indexSafe: all["messageIndexSafe"] == "true",
		sz:       sizes{number(t, all["mappedFileSizeCommitLog"]), number(t, all["mappedFileSizeConsumeQueue"]), number(t, all["mappedFileSizeConsumeQueueExt"])},
		extended: all["enableConsumeQueueExt"] == "true"}
}

func takeTurns(t *testing.T, eras []*era, conf map[string]string, scale int) {
	t.Helper()
	newTurns(t, eras, conf, scale).take(eras)
}

// take lets the servers take their turns; the last one only looks.
func (r *turns) take(eras []*era) {
	t := r.t
	t.Helper()
	for n, e := range eras {
		began := millis()
		s := r.begin(e)
		up := millis()
		var last []outgoing
		if n < len(eras)-1 {
			last = r.traffic(s, n)
		} else if long() {
			r.printAll(s, n)
		}
		sent := millis()
		r.end(s, e, last)
		t.Logf("turn %d, %s (kill: %v): %d messages; start and checks %d ms, messages %d ms, end and files %d ms", n, e.kind, e.kill, r.l.count(), up-began, sent-up, millis()-sent)
		if t.Failed() {
			t.FailNow()
		}
	}
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (l *ledger) count() (n int) {
	for _, q := range l.queues {
		n += len(q)
	}
	return n
}

// traffic does all that a server can do to a store, and returns messages for the moment of the kill.
func (r *turns) traffic(s *server, n int) []outgoing {
	t := r.t
	t.Helper()
	w := &sender{server: s, l: r.l, era: n}
	group := "DiskGroup" + strconv.Itoa(n/2) // made by every other era, used by the next too
	if n == 0 {
		r.topic(s, "Disk", 4)
		r.topic(s, strings.Repeat("t", 127), 1)
	}
	if n%2 == 0 {
		s.Done(createGroup(t, group))
		s.Done(heartbeat(t, group))
		r.l.topics["%RETRY%"+group] = 1
		s.Done(heartbeat(t, "DiskAuto"+strconv.Itoa(n)))
	}
	own, auto, doomed := "Era"+strconv.Itoa(n), "Auto"+strconv.Itoa(n), "Doomed"+strconv.Itoa(n)
	r.topic(s, own, 2)
	r.topic(s, doomed, 2)
	r.l.topics[auto] = 4

	if n > 0 {
		r.deleteTopic(s, "Again")
	}
	r.topic(s, "Again", 2)

	w.delayed(place{"Disk", 1}, "1", "2", "3", "4", "18", "1")
	w.everyKind("Disk", 4, r.scale)
	w.everyKind(own, 2, 1)
	w.everyKind(strings.Repeat("t", 127), 1, 1)
	for i := range 10 {
		w.message(place{"Again", int32(i % 2)}, fmt.Sprintf("again %d %d", n, i), "KEYS", fmt.Sprintf("again-%d-%d", n, i))
		w.message(place{doomed, int32(i % 2)}, fmt.Sprintf("doomed %d", i), "KEYS", fmt.Sprintf("doomed-%d", i))
	}
	w.send()
	w.message(place{auto, 3}, "a topic of its own", "KEYS", "auto", "TAGS", "Auto")
	w.send()
	r.l.settle(s)
	w.give(group, 1, 2, 0, -1)
	r.half(w)
	r.commit(s, group, "Disk")
	r.commit(s, group, own)
	r.deleteTopic(s, doomed)
	r.l.settle(s)

	if r.big != nil {
		r.big.send(s)
	}
	// Pending across the switch.
	w.delayed(place{own, 0}, "1", "2", "3")
	w.send()
	r.commit(s, "DiskAuto0", "Disk")
	for i := range 40 * r.scale {
		w.message(place{"Disk", int32(i % 4)}, fmt.Sprintf("last %d %d", n, i), "KEYS", fmt.Sprintf("last-%d-%d", n, i), "TAGS", "Last")
	}
	w.batchOf(place{own, 1}, "one", "two", "three")
	if !s.eraKills(r) {
		w.send()
		return nil
	}
	return w.wait
}

// eraKills tells whether the era that runs ends by a kill.
func (s *server) eraKills(r *turns) bool { return r.l.eras[len(r.l.eras)-1].kill }

// topic creates a topic.
func (r *turns) topic(s *server, topic string, queues int) {
	s.Done(createTopic(topic, queues))
	r.l.topics[topic] = queues
}

// give sends messages back for a group, with these delay levels; one of -1 makes a dead letter.
func (w *sender) give(group string, levels ...int) {
	w.l.topics["%DLQ%"+group] = 1
	for q := range w.l.topics["Disk"] {
		for _, m := range w.l.queues[place{"Disk", int32(q)}] {
			if len(levels) > 0 && strings.HasPrefix(string(m.body), "keys "+strconv.Itoa(w.era)+" ") {
				w.sendBack(m, group, levels[0])
				levels = levels[1:]
			}
		}
	}
	if len(levels) > 0 {
		w.t.Errorf("no message for the levels %v", levels)
	}
}

// deleteTopic deletes a topic; its queues must be gone.
func (r *turns) deleteTopic(s *server, topic string) {
	r.t.Helper()
	s.Done(wire.Request(215, "topic", topic))
	r.l.forget(topic)
	if answer := s.Ask(pull(place{topic, 0}, 0)); answer.Code != topicNotExist {
		r.t.Errorf("pull of the deleted %s: %d %s", topic, answer.Code, answer.Remark)
	}
	// The official broker leaves the empty folders.
	if files, _ := filepath.Glob(filepath.Join(r.broker.StoreDir, "consumequeue", topic, "*", "*")); len(files) > 0 {
		r.t.Errorf("of the deleted %s there are still %q", topic, files)
	}
}

const halfTopic = "RMQ_SYS_TRANS_HALF_TOPIC"

// half commits the half messages that wait, of which some are the other server's, and sends two new ones.
func (r *turns) half(w *sender) {
	r.t.Helper()
	half := place{halfTopic, 0}
	for _, m := range r.l.queues[half] {
		if m.read.Properties["done"] != "" || strings.HasPrefix(string(m.body), "half "+strconv.Itoa(w.era)) {
			continue
		}
		m.read.Properties["done"] = "yes"
		committed := *m
		committed.topic, committed.queueId, committed.offset, committed.msgId = "Disk", 3, -1, ""
		committed.sysFlag, committed.prepared, committed.read = m.sysFlag|0x8, m.read.PhyOffset, stored{}
		r.l.expect(r.t, &committed)
		w.Done(wire.Request(37, "producerGroup", "DiskTransactions", "tranStateTableOffset", strconv.FormatInt(m.read.QueueOffset, 10),
			"commitLogOffset", strconv.FormatInt(m.read.PhyOffset, 10), "commitOrRollback", "8", "fromTransactionCheck", "false",
			"msgId", m.properties["UNIQ_KEY"], "transactionId", m.properties["UNIQ_KEY"]))
		committed.acked = true
	}
	for i := range 2 {
		o := w.message(place{"Disk", 3}, fmt.Sprintf("half %d %d", w.era, i), "TRAN_MSG", "true", "PGROUP", "DiskTransactions", "KEYS", fmt.Sprintf("half-%d-%d", w.era, i), "WAIT", "true")
		o.frame.Set("f", "4")
		m := o.messages[0]
		m.topic, m.queueId = half.topic, 0
		m.properties = parsed(o.frame.Ext["i"], "REAL_TOPIC", "Disk", "REAL_QID", "3")
	}
	w.send()
	if r.l.topics[halfTopic] == 0 {
		until(r.t, "the half topic is registered", func() bool { return w.table(21, "topicConfigTable")[halfTopic] != nil })
		r.l.topics[halfTopic] = 1
	}
}
