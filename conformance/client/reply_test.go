//go:build conformance

package client

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// replyPatience is how long a requester of these cases waits.
const replyPatience = 30 * time.Second

// answering starts a consumer that replies to what it gets. Its replies' outcomes are logged: the requester sees them.
func (c *cluster) answering(t *testing.T, topic string) {
	t.Helper()
	replier := c.newProducer(t, producer.WithGroupName("P-replier-"+t.Name()[4:]))
	c.newPush(t, subscription{topic: topic, group: "G-" + t.Name()[4:], tags: "*",
		listen: func(ctx context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, m := range ms {
				reply, err := consumer.CreateReplyMessage(m, []byte("re: "+string(m.Body)))
				if err == nil {
					reply.Body = []byte("re: " + string(m.Body)) // the client takes it for properties
					_, err = replier.SendSync(ctx, reply)
				}
				if err != nil {
					t.Logf("reply to %s: %v", m.Body, err)
				}
			}
			return consumer.ConsumeSuccess, nil
		}})
}

// Requests are answered, one at a time and several at once.
func TestRequestReply(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "RequestReply", 2)
	server.answering(t, topic)
	p := server.newProducer(t)
	var got *primitive.Message
	eventually(t, "a reply", func() bool { // the client's first heartbeat comes a second after its start; no broker knows it before
		var err error
		got, err = p.Request(context.Background(), 2*time.Second, primitive.NewMessage(topic, []byte("sync")))
		return err == nil
	})
	if string(got.Body) != "re: sync" || !strings.HasSuffix(got.Topic, "_REPLY_TOPIC") ||
		got.GetProperty("CORRELATION_ID") == "" || got.GetProperty("PUSH_REPLY_TIME") == "" {
		t.Fatalf("reply %v", got)
	}
	type outcome struct{ want, got string }
	came := make(chan outcome, 10)
	for i := range cap(came) {
		body := fmt.Sprint("async ", i)
		err := p.RequestAsync(context.Background(), replyPatience, func(_ context.Context, m *primitive.Message, err error) {
			text := fmt.Sprint(err)
			if err == nil {
				text = string(m.Body)
			}
			came <- outcome{"re: " + body, text}
		}, primitive.NewMessage(topic, []byte(body)))
		if err != nil {
			t.Fatal(err)
		}
	}
	for range cap(came) {
		select {
		case o := <-came:
			if o.got != o.want {
				t.Errorf("got %s, want %s", o.got, o.want)
			}
		case <-time.After(2 * replyPatience):
			t.Fatal("replies are missing")
		}
	}
	// v2.1.2 panics when it is shut down between a reply and the answer to its request's send. Answers come in order.
	after := server.newTopic(t, "RequestReplyAfter", 1)
	for range 2 {
		if _, err := p.SendSync(context.Background(), primitive.NewMessage(after, []byte("after"))); err != nil {
			t.Fatal(err)
		}
	}
}

// A request that nobody answers ends by its time-out.
func TestRequestUnanswered(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "RequestUnanswered", 1)
	p := server.newProducer(t)
	if got, err := p.Request(context.Background(), time.Second, primitive.NewMessage(topic, []byte("x"))); err == nil {
		t.Errorf("reply %v", got)
	}
}

// Who answers a requester that was there and has gone hears of it.
func TestRequesterGone(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "RequesterGone", 1)
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-RequesterGone", tags: "*", listen: in.collect})
	p := server.newProducer(t)
	replier := server.newProducer(t, producer.WithGroupName("P-replier-RequesterGone"))
	asks := []string{"while it is there", "and away"}
	for n := range asks {
		if err := p.RequestAsync(context.Background(), replyPatience, func(context.Context, *primitive.Message, error) {},
			primitive.NewMessage(topic, []byte(asks[n]))); err != nil {
			t.Fatal(err)
		}
		request := in.expect(t, asks[:n+1])[n]
		reply, err := consumer.CreateReplyMessage(request, []byte("a reply"))
		if err != nil {
			t.Fatal(err)
		}
		reply.Body = []byte("a reply") // as in answering
		gone := ""
		if n == 1 {
			gone = "push reply message fail, channel of <" + request.GetProperty("REPLY_TO_CLIENT") + "> not found."
			if err := p.Shutdown(); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the broker knows it, or that it has gone", func() bool {
			_, err := replier.SendSync(context.Background(), reply)
			return gone == "" && err == nil || gone != "" && err != nil && strings.Contains(err.Error(), gone)
		})
	}
}
