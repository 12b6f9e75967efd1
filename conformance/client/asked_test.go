//go:build conformance

package client

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"rocketd/conformance/wire"
)

// clientIds are the members of a group as the broker knows them.
func (c *cluster) clientIds(t *testing.T, group string) []string {
	t.Helper()
	f := c.ask(t, c.broker(), wire.Request(38, "consumerGroup", group))
	var list struct{ ConsumerIdList []string }
	if f.Code != 0 {
		t.Fatalf("members of %s: %d %s", group, f.Code, f.Remark)
	}
	if err := json.Unmarshal(f.Body, &list); err != nil {
		t.Fatal(err)
	}
	return list.ConsumerIdList
}

// askJSON makes an administrator's request that must succeed, and returns its body.
func (c *cluster) askJSON(t *testing.T, request *wire.Frame) map[string]any {
	t.Helper()
	f := c.ask(t, c.broker(), request)
	if f.Code != 0 {
		t.Fatalf("request %d: %d %s", request.Code, f.Code, f.Remark)
	}
	v, err := wire.ParseJSON(f.Body)
	if err != nil {
		t.Fatalf("request %d: %v in %q, remark %q", request.Code, err, f.Body, f.Remark)
	}
	body, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("request %d: body %s", request.Code, f.Body)
	}
	return body
}

// What an administrator asks of a Go consumer by way of the broker: how it is, to consume one message, where it stands.
func TestConsumerIsAsked(t *testing.T) {
	t.Parallel()
	const group = "G-IsAsked"
	topic := server.newTopic(t, "IsAsked", 2)
	server.newGroup(t, group)
	p := server.newProducer(t)
	var in inbox
	server.newPush(t, subscription{topic: topic, group: group, listen: in.collect})
	bodies := sendSome(t, p, topic, 0, 9)
	last := send(t, p, primitive.NewMessage(topic, []byte("once more")))
	in.expect(t, append(bodies, "once more"))
	server.awaitCommitted(t, group, topic, 2)
	var id string
	for _, one := range server.clientIds(t, group) {
		if one != "earlier member" {
			id = one
		}
	}

	// With just one sample of its statistics the client divides by zero, and answers a remark in place of a body.
	running := func(jstack string) *wire.Frame {
		return wire.Request(307, "consumerGroup", group, "clientId", id, "jstackEnable", jstack)
	}
	var stacks string
	eventuallyEvery(t, time.Second, "the consumer tells how it is", func() bool {
		stacks = string(server.ask(t, server.broker(), running("true")).Body)
		return stacks != ""
	})
	// The client does not escape the stacks' ends of lines: fastjson reads that, hardly anyone else.
	if !strings.Contains(stacks, `"jstack":"goroutine `) || !strings.Contains(stacks, "consumer.(*pushConsumer)") {
		t.Errorf("no stacks in %.2000q", stacks)
	}
	info := server.askJSON(t, running("false"))
	if queues, _ := info["mqTable"].(map[string]any); len(queues) < 2 {
		t.Errorf("queues %v", queues)
	}
	result := server.askJSON(t, wire.Request(309, "consumerGroup", group, "clientId", id, "msgId", last.OffsetMsgID))
	// The client writes the outcome's number, which fastjson takes for its name.
	if got := fmt.Sprint(result["consumeResult"]); got != "0" && got != "CR_SUCCESS" {
		t.Errorf("direct consumption: %v", result)
	}
	in.expect(t, append(bodies, "once more", "once more"))

	status := server.askJSON(t, wire.Request(223, "topic", topic, "group", group, "clientAddr", id))
	members, _ := status["consumerTable"].(map[string]any)
	offsets, _ := members[id].(map[string]any)
	sum := 0.0
	for _, offset := range offsets {
		n, _ := offset.(float64)
		sum += n
	}
	if len(members) != 1 || len(offsets) != 2 || sum != 10 {
		t.Errorf("status %v", status)
	}
}

// An online group of Go consumers goes back to the beginning.
func TestGroupIsReset(t *testing.T) {
	t.Parallel()
	const group = "G-IsReset"
	topic := server.newTopic(t, "IsReset", 2)
	p := server.newProducer(t)
	var in inbox
	server.newPush(t, subscription{topic: topic, group: group, listen: in.collect})
	bodies := sendSome(t, p, topic, 0, 10)
	in.expect(t, bodies)
	server.awaitCommitted(t, group, topic, 2)
	table := server.askJSON(t, wire.Request(222, "topic", topic, "group", group, "timestamp", "1000000000000", "isForce", "true"))
	if offsets, _ := table["offsetTable"].(map[string]any); len(offsets) != 2 {
		t.Errorf("offsets %v", table)
	} else {
		for q, offset := range offsets {
			if fmt.Sprint(offset) != "0" {
				t.Errorf("offset %v of %s", offset, q)
			}
		}
	}
	// The client waits for 10 s in the middle of it.
	eventuallyWithin(t, patience+10*time.Second, "all messages come again", func() bool { return len(in.all()) >= 20 })
	times := map[string]int{}
	for _, body := range in.bodies() {
		times[body]++
	}
	for _, body := range bodies {
		if times[body] < 2 {
			t.Errorf("%s came %d times", body, times[body])
		}
	}
	server.awaitCommitted(t, group, topic, 2)
}
