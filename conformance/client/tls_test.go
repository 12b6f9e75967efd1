//go:build conformance && newest

package client

import (
	"context"
	"testing"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"rocketd/conformance/target"
	"rocketd/remoting/certtest"
)

// TestTLS sends to and consumes from servers that speak nothing but TLS. Of this client only the newest commit has TLS;
// it shows no certificate and checks none.
func TestTLS(t *testing.T) {
	a := certtest.NewAuthority(t)
	id := a.Issue("server")
	s := target.Start(t, target.Options{Secure: a.Client(id), Properties: []string{"-Dtls.config.file=" + a.NothingPath, "-Dtls.server.mode=enforcing",
		"-Dtls.test.mode.enable=false", "-Dtls.server.certPath=" + id.CertPath, "-Dtls.server.keyPath=" + id.KeyPath}})
	resolver := primitive.NewPassthroughResolver([]string{s.Namesrv})
	ad, err := admin.NewAdmin(admin.WithResolver(resolver), admin.WithTls(true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ad.Close() })
	const topic = "TopicTLS"
	if err := ad.CreateTopic(context.Background(), admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(s.Brokers[0].Addr)); err != nil {
		t.Fatal(err)
	}
	p, err := rocketmq.NewProducer(producer.WithNsResolver(resolver), producer.WithGroupName("P-TLS"), producer.WithInstanceName(instance()), producer.WithTls(true))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Shutdown() })
	c, err := rocketmq.NewPushConsumer(consumer.WithNsResolver(resolver), consumer.WithGroupName("C-TLS"), consumer.WithInstance(instance()),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithTls(true))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 100)
	err = c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range ms {
			got <- string(m.Body)
		}
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Shutdown() })
	sent := map[string]bool{}
	for _, size := range []int{1, 1000, 100_000} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte('a' + i%26)
		}
		send(t, p, primitive.NewMessage(topic, body))
		sent[string(body)] = true
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for len(sent) > 0 {
		select {
		case body := <-got:
			delete(sent, body)
		case <-ctx.Done():
			t.Fatalf("%d messages have not come", len(sent))
		}
	}
}
