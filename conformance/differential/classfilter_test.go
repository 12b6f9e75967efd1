//go:build conformance

package differential

import (
	"bytes"
	"fmt"
	"testing"

	"rocketd/conformance/wire"
)

// The filter servers of 3.x and early 4.x are gone from the broker of 4.9: it knows neither 301 nor 302, and gives a
// subscription in class-filter mode every message, whatever class it names.
func TestClassFilter(t *testing.T) {
	topic := newTopic(t, "ClassFilter", 1)
	c := join(t, "class-filter", "ClassFilterGroup", 409, nil, topic)
	for _, code := range []int{301, 302} {
		f, err := c.Call(wire.Request(code, "filterServerAddr", "127.0.0.1:1", "consumerGroup", "G", "topic", topic, "className", "a.B", "classCRC", "0"), patience)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := (answer{3, fmt.Sprintf(" request type %d not supported", code), ""}).matches(f); wrong != "" {
			t.Errorf("%d: %s", code, wrong)
		}
	}
	f := heartbeat("class-filter", "ClassFilterGroup", 409, topic)
	f.Body = bytes.Replace(f.Body, []byte(`"classFilterMode":false`), []byte(`"classFilterMode":true`), 1)
	f.Body = bytes.Replace(f.Body, []byte(`"subString":"*"`), []byte(`"subString":"org.example.Filter"`), 1)
	f.Body = bytes.Replace(f.Body, []byte(`"subVersion":1`), []byte(`"subVersion":2`), 1) // a later one replaces the first
	for _, request := range []*wire.Frame{
		f,
		sendV2(topic).Set("i", wire.Properties("TAGS", "TagA")).WithBody([]byte("one")),
		sendV2(topic).WithBody([]byte("two")),
	} {
		if a, err := c.Call(request, patience); err != nil || a.Code != 0 {
			t.Fatalf("request %d: %+v, %v", request.Code, a, err)
		}
	}
	expectStored(t, topic, 1, 2)
	// The flag for class filters, without a subscription.
	a, err := c.Call(wire.Request(11, "consumerGroup", "ClassFilterGroup", "topic", topic, "queueId", "0", "queueOffset", "0", "maxMsgNums", "32",
		"sysFlag", "8", "commitOffset", "0", "suspendTimeoutMillis", "0", "subVersion", "2", "expressionType", "TAG"), patience)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := wire.Messages(a.Body); err != nil || a.Code != 0 || len(got) < 2 || string(got[0].Body) != "one" || string(got[1].Body) != "two" {
		t.Errorf("the pull gives code %d, %q, %d messages, %v", a.Code, a.Remark, len(got), err)
	}
}
