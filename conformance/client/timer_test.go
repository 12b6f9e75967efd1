//go:build conformance

package client

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// timed sends a message with a property that names a time.
func timed(t *testing.T, c *cluster, topic, body, name string, value int64) *primitive.SendResult {
	t.Helper()
	p := c.newProducer(t)
	m := primitive.NewMessage(topic, []byte(body)).WithTag("TagA")
	m.WithProperty(name, strconv.FormatInt(value, 10))
	return send(t, p, m)
}

// Messages with a time of their own come at it, whichever property names it, and none that was recalled. 4.9 does not know
// them: the official server is 5.3.3. The client has no call for a recall, so that is a frame of ours.
func TestTimedMessages(t *testing.T) {
	t.Parallel()
	kind, err := target.Selected5()
	if err != nil {
		t.Fatal(err)
	}
	started := target.Start(t, target.Options{Kind: kind, Brokers: []target.BrokerOptions{{Conf: map[string]string{"recallMessageEnable": "true"}}}})
	c := &cluster{started, []string{started.Namesrv}}
	topic := c.newTopic(t, "Timed", 2)
	var in inbox
	c.newPush(t, subscription{topic: topic, group: "G-Timed", tags: "TagA", listen: in.collect})

	begin := time.Now().UnixMilli()
	due := map[string]int64{"at": begin + 4000, "ms": begin + 3000, "s": begin + 5000, "past": 0}
	timed(t, c, topic, "at", "TIMER_DELIVER_MS", due["at"])
	timed(t, c, topic, "ms", "TIMER_DELAY_MS", 3000)
	timed(t, c, topic, "s", "TIMER_DELAY_SEC", 5)
	timed(t, c, topic, "past", "TIMER_DELIVER_MS", begin-1000)
	if kind == target.Rocketd { // means nothing to a 5.3.3 broker
		due["start"] = begin + 3500
		timed(t, c, topic, "start", "__STARTDELIVERTIME", due["start"])
	}
	gone := begin + 4500
	r := timed(t, c, topic, "gone", "TIMER_DELIVER_MS", gone)
	handle := fmt.Sprintf("v1 %s %s %d %s", topic, c.Brokers[0].Name, gone+1, r.MsgID) // as in the answer, which the client passes over
	answer, err := wire.CallOnce(c.broker(), wire.Request(370, "producerGroup", "P-Timed", "topic", topic, "recallHandle",
		base64.URLEncoding.EncodeToString([]byte(handle))), patience)
	if err != nil || answer.Code != 0 || answer.Ext["msgId"] != r.MsgID {
		t.Fatalf("recall: %+v, %v", answer, err)
	}
	last := begin + 6000 // behind what was recalled
	due["last"] = last
	timed(t, c, topic, "last", "TIMER_DELIVER_MS", last)

	var bodies []string
	for body := range due {
		bodies = append(bodies, body)
	}
	slack := int64(0)
	if kind != target.Rocketd { // rounds to the second below
		slack = 1100
	}
	for _, m := range in.expect(t, bodies) {
		if at := due[string(m.Body)]; m.StoreTimestamp < at-slack || m.GetTags() != "TagA" || m.Topic != topic {
			t.Errorf("%s, due at %d: %s", m.Body, at, m)
		}
	}
}
