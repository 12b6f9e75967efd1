//go:build conformance

package client

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

const aclAccounts = `accounts:
- accessKey: theAdmin
  secretKey: adminSecret
  admin: true
- accessKey: producer
  secretKey: producerSecret
  topicPerms:
  - AclT=PUB
- accessKey: consumer
  secretKey: consumerSecret
  topicPerms:
  - AclT=SUB
  groupPerms:
  - G-Acl=SUB
`

// startACL starts a cluster in which everybody must sign, with a topic.
func startACL(t *testing.T, topic string) *cluster {
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{{Name: "acl-a", Cluster: "AclCluster", ACL: aclAccounts}}})
	k := &cluster{c, strings.Split(c.Namesrv, ";")}
	f := k.ask(t, k.broker(), wire.Request(17, "topic", topic, "defaultTopic", "TBW102", "readQueueNums", "2", "writeQueueNums", "2", "perm", "6",
		"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false").Sign("theAdmin", "adminSecret"))
	if f.Code != 0 {
		t.Fatalf("topic %s: %d %s", topic, f.Code, f.Remark)
	}
	eventually(t, "the route of "+topic, func() bool { return k.isRouted(t, topic) })
	return k
}

// The client's Credentials: a producer with PUB, and a consumer with SUB of topic and group and nothing else, that sends
// a message back once (H19). Whoever has no permission, or another secret, is told so.
func TestACL(t *testing.T) {
	t.Parallel()
	c := startACL(t, "AclT")
	sending := primitive.Credentials{AccessKey: "producer", SecretKey: "producerSecret"}
	receiving := primitive.Credentials{AccessKey: "consumer", SecretKey: "consumerSecret"}

	var got inbox
	var tries atomic.Int32
	c.newPush(t, subscription{topic: "AclT", group: "G-Acl", options: []consumer.Option{consumer.WithCredentials(receiving)},
		listen: func(ctx context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			if tries.Add(1) == 1 {
				return consumer.ConsumeRetryLater, nil
			}
			return got.collect(ctx, ms...)
		}})
	p := c.newProducer(t, producer.WithCredentials(sending))
	bodies := sendSome(t, p, "AclT", 0, 4)
	again := 0
	for _, m := range got.expect(t, bodies) {
		again += int(m.ReconsumeTimes)
	}
	if again != 1 {
		t.Errorf("%d messages came again", again)
	}

	for what, o := range map[string]struct {
		credentials *primitive.Credentials
		want        string
	}{
		"no permission": {&receiving, "No default permission for topic:AclT"},
		"wrong secret":  {&primitive.Credentials{AccessKey: "producer", SecretKey: "anotherSecret"}, "Check signature failed for accessKey=producer"},
		"unknown key":   {&primitive.Credentials{AccessKey: "nobody1", SecretKey: "anotherSecret"}, "No acl config for nobody1"},
		"no key":        {nil, "No accessKey is configured"},
	} {
		var options []producer.Option
		if o.credentials != nil {
			options = append(options, producer.WithCredentials(*o.credentials))
		}
		_, err := c.newProducer(t, options...).SendSync(context.Background(), primitive.NewMessage("AclT", []byte("x")))
		if err == nil || !strings.Contains(err.Error(), "org.apache.rocketmq.acl.common.AclException: "+o.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
