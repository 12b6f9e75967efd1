//go:build conformance

package client

import (
	"regexp"
	"testing"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// A traced message's whole way, as stock mqadmin shows it: sent by the one, consumed by the other.
func TestTrace(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "Trace", 1)
	traced := func() *primitive.TraceConfig {
		return &primitive.TraceConfig{Access: primitive.Local, Resolver: server.resolver(), NamesrvAddrs: server.namesrv}
	}
	p := server.newProducer(t, producer.WithTrace(traced()))
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-Trace", tags: "*", listen: in.collect, options: []consumer.Option{consumer.WithTrace(traced())}})
	sent := send(t, p, primitive.NewMessage(topic, []byte("traced")).WithTag("TagA").WithKeys([]string{"key"}))
	in.expect(t, []string{"traced"})
	pub := regexp.MustCompile(`(?m)^Pub +P-Trace +\S+ +.* success *$`)
	sub := regexp.MustCompile(`(?m)^Sub +G-Trace +.* success *$`)
	out := ""
	eventually(t, "both traces", func() bool {
		var err error
		if out, err = server.Mqadmin(t, "queryMsgTraceById", "-i", sent.MsgID); err != nil {
			t.Fatal(err)
		}
		t.Log(out)
		return sub.MatchString(out) && pub.MatchString(out)
	})
}
