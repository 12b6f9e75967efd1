//go:build conformance

package disk

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// era is one server's turn on the directory.
type era struct {
	kind       target.Kind
	kill       bool  // it ends by kill -9
	v6         bool  // its store host is ::1
	unextended bool  // enableConsumeQueueExt is off
	start, end int64 // ms
}

// turns is one directory on which servers take turns.
type turns struct {
	t      *testing.T
	target *target.Target
	broker *target.Broker
	l      *ledger
	sz     sizes
	scale  int // how many messages of a kind
	// keysLost: someone has removed index files, and not made all of their keys again.
	keysLost bool
	// indexSafe: messageIndexSafe is set.
	indexSafe bool
	extended  bool // enableConsumeQueueExt is set
	big       *big // nil but for files of the official sizes
	// Settings as the last server had them; nil before the first.
	topics, groups map[string]any
}

func createTopic(topic string, queues int) *wire.Frame {
	n := strconv.Itoa(queues)
	return wire.Request(17, "topic", topic, "defaultTopic", "TBW102", "readQueueNums", n, "writeQueueNums", n, "perm", "6",
		"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false")
}

// createGroup makes a subscription group by UPDATE_AND_CREATE_SUBSCRIPTIONGROUP.
func createGroup(t *testing.T, group string) *wire.Frame {
	t.Helper()
	body, err := json.Marshal(map[string]any{"groupName": group, "consumeEnable": true, "consumeFromMinEnable": true, "consumeBroadcastEnable": true,
		"retryQueueNums": 1, "retryMaxTimes": 16, "brokerId": 0, "whichBrokerWhenConsumeSlowly": 1, "notifyConsumerIdsChangedEnable": true})
	if err != nil {
		t.Fatal(err)
	}
	return wire.Request(200).WithBody(body)
}

// heartbeat is that of one consumer: it makes the group and its retry topic.
func heartbeat(t *testing.T, group string) *wire.Frame {
	t.Helper()
	body, err := json.Marshal(map[string]any{"clientID": "127.0.0.1@disk", "producerDataSet": []any{}, "consumerDataSet": []any{map[string]any{
		"groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
		"subscriptionDataSet": []any{}, "unitMode": false}}})
	if err != nil {
		t.Fatal(err)
	}
	return wire.Request(34).WithBody(body)
}

// begin starts a server and checks that all is as the one before left it.
func (r *turns) begin(e *era) *server {
	t := r.t
	t.Helper()
	host := "127.0.0.1"
	if e.v6 = e.v6 && hasIPv6(); e.v6 {
		host = "::1"
	}
	ext := strconv.FormatBool(r.extended && !e.unextended)
	if err := r.broker.Configure(map[string]string{"brokerIP1": host, "enableConsumeQueueExt": ext}); err != nil {
		t.Fatal(err)
	}
	r.broker.RunAs(e.kind)
	if e.kind == target.Official {
		removeCutOff(t, r.broker.StoreDir)
	}
	e.start = millis()
	r.l.eras = append(r.l.eras, e)
	if r.broker.Pid() == 0 { // the first one runs already
		if err := r.broker.Start(); err != nil {
			t.Fatal(err)
		}
	}
	s := connect(t, r.broker)
	if r.topics != nil {
		sameTable(t, "topics", s.table(21, "topicConfigTable"), r.topics)
		sameTable(t, "groups", s.table(201, "subscriptionGroupTable"), r.groups)
		r.checkOffsets(s)
	}
	r.l.readAgain(s)
	r.l.settle(s)
	if n := r.l.dropUnacknowledged(); n > 0 {
		t.Logf("%d messages that were not acknowledged before the kill are not stored", n)
	}
	if before := len(r.l.eras) - 2; before >= 0 && r.l.eras[before].kill && e.kind == target.Official && !r.indexSafe {
		r.keysLost = true // see small
	}
	if r.big != nil {
		r.big.check(s)
	}
	if !r.keysLost {
		r.l.checkIndex(s)
	}
	r.l.checkViews(s, e.kind == target.Rocketd)
	return s
}

// sameTable compares settings. What a server makes at its start may be new.
func sameTable(t *testing.T, what string, got, want map[string]any) {
	t.Helper()
	for k, w := range want {
		if !reflect.DeepEqual(got[k], w) {
			t.Errorf("%s: %s is %v, was %v", what, k, got[k], w)
		}
	}
	for k := range got {
		if want[k] == nil && !slices.Contains(madeAtStart, k) {
			t.Errorf("%s: %s is new: %v", what, k, got[k])
		}
	}
}

// madeAtStart are topics that the official server makes some time after its start.
var madeAtStart = []string{"RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC"}

func (r *turns) checkOffsets(s *server) {
	r.t.Helper()
	for at, want := range r.l.offsets {
		var group, topic, queueId string
		if _, err := fmt.Sscan(at, &group, &topic, &queueId); err != nil {
			r.t.Fatal(err)
		}
		if got := s.Number("offset", wire.Request(14, "consumerGroup", group, "topic", topic, "queueId", queueId)); got != want {
			r.t.Errorf("offset of %s is %d, was %d", at, got, want)
		}
	}
}

// end ends a server and checks the files that it leaves. last are messages on the way while it is killed.
func (r *turns) end(s *server, e *era, last []outgoing) {
	t := r.t
	t.Helper()
	r.topics, r.groups = s.table(21, "topicConfigTable"), s.table(201, "subscriptionGroupTable")
	if e.kill {
		r.killDuring(s, last)
	} else if err := r.broker.Stop(); err != nil {
		t.Fatal(err)
	}
	e.end = millis()
	s.hangUp()
	saved := savedOffsets(t, r.broker.StoreDir)
	if !e.kill {
		for at, want := range r.l.offsets {
			if saved[at] != want {
				t.Errorf("consumerOffset.json has %d for %q, committed is %d", saved[at], at, want)
			}
		}
	}
	maps.DeleteFunc(r.l.offsets, func(at string, _ int64) bool { _, ok := saved[at]; return !ok })
	for at := range r.l.offsets {
		r.l.offsets[at] = saved[at]
	}
	r.l.units = 0
	r.l.checkFiles(t, r.broker.StoreDir, r.sz, e.kill)
	if r.extended && r.l.units == 0 {
		t.Error("no entry leads to a unit in consumequeue_ext")
	}
}

// killDuring kills the server while it is sent messages.
func (r *turns) killDuring(s *server, last []outgoing) {
	t := r.t
	t.Helper()
	sending := sender{server: s, l: r.l}
	killed := make(chan error, 1)
	kill := func() { killed <- r.broker.Kill() }
	if len(last) == 0 {
		kill()
	}
	var pending []*wire.Pending
	for i, o := range last {
		if i == len(last)/4 {
			go kill()
		}
		p, err := sending.submit(o)
		if err != nil {
			break // it is dead already
		}
		pending = append(pending, p)
	}
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	acked := 0
	for i, p := range pending {
		if answer, err := p.Wait(patience); err == nil {
			acked++
			sending.answered(last[i], answer)
		}
	}
	t.Logf("%d of %d messages were acknowledged before the kill", acked, len(last))
}

// commit commits an offset for each queue of a topic.
func (r *turns) commit(s *server, group, topic string) {
	for q := range r.l.topics[topic] {
		p := place{topic, int32(q)}
		offset := int64(len(r.l.queues[p]))
		s.Done(p.request(15).Set("consumerGroup", group).Set("commitOffset", strconv.FormatInt(offset, 10)))
		r.l.offsets[fmt.Sprintf("%s %s %d", group, topic, q)] = offset
	}
}
