//go:build conformance

package client

import (
	"slices"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
)

// A group goes on where it stopped, with another member in another process' place.
func TestConsumerRestart(t *testing.T) {
	t.Parallel()
	const group = "G-ConsumerRestart"
	topic := server.newTopic(t, "ConsumerRestart", 4)
	p := server.newProducer(t)
	var before, after inbox
	first := server.newPush(t, subscription{topic: topic, group: group, listen: before.collect})
	before.expect(t, sendSome(t, p, topic, 0, 20))
	server.awaitCommitted(t, group, topic, 4)
	if err := first.Shutdown(); err != nil {
		t.Fatal(err)
	}
	missed := sendSome(t, p, topic, 20, 20)
	server.newPush(t, subscription{topic: topic, group: group, listen: after.collect})
	after.expect(t, append(missed, sendSome(t, p, topic, 40, 4)...))
}

// Without a shutdown, too, the offsets reach the broker: the client commits every few seconds.
func TestOffsetsArePersisted(t *testing.T) {
	t.Parallel()
	const group = "G-Persisted"
	topic := server.newTopic(t, "Persisted", 2)
	p := server.newProducer(t)
	bodies := sendSome(t, p, topic, 0, 10)
	var in inbox
	server.newPush(t, subscription{topic: topic, group: group, listen: in.collect})
	in.expect(t, bodies)
	server.awaitCommitted(t, group, topic, 2)
}

// A new group on a young topic starts with its first message, whatever it asks for: the broker answers offset 0 for
// it, and so the client never comes to choose.
func TestNewGroupOnYoungTopic(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "YoungTopic", 2)
	bodies := sendSome(t, server.newProducer(t), topic, 0, 6)
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-YoungTopic", listen: in.collect,
		options: []consumer.Option{consumer.WithConsumeFromWhere(consumer.ConsumeFromLastOffset)}})
	in.expect(t, bodies)
}

// What the strict server is for runs in one case, since it restarts that server: where a new group begins, and what is
// left after a restart of the broker.
func TestOldTopicAndBrokerRestart(t *testing.T) {
	t.Parallel()
	topic := strict.newTopic(t, "OldTopic", 2)
	p := strict.newProducer(t)
	early := sendSome(t, p, topic, 0, 6)
	// The client's time to consume from has whole seconds: the next messages belong to a later one.
	moment := time.Now().UTC().Truncate(time.Second).Add(2 * time.Second)
	eventually(t, "the second is over", func() bool { return time.Now().After(moment) })
	late := sendSome(t, p, topic, 6, 6)
	eventually(t, "all are dispatched", func() bool { return strict.messagesIn(t, topic, 2) == 12 })

	var first, last, timed inbox
	start := func(group string, in *inbox, options ...consumer.Option) {
		t.Helper()
		strict.newPush(t, subscription{topic: topic, group: group, listen: in.collect, options: options})
	}
	start("G-Old-first", &first, consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	start("G-Old-last", &last, consumer.WithConsumeFromWhere(consumer.ConsumeFromLastOffset))
	start("G-Old-timed", &timed, consumer.WithConsumeFromWhere(consumer.ConsumeFromTimestamp),
		consumer.WithConsumeTimestamp(moment.Format("20060102150405")))
	first.expect(t, append(slices.Clone(early), late...))
	timed.expect(t, late)
	// The last one has nothing to show for its start but what comes after it.
	var now []string
	eventuallyEvery(t, 200*time.Millisecond, "the newest come to who starts at the end", func() bool {
		now = append(now, sendSome(t, p, topic, 12+len(now), 2)...)
		return len(last.all()) > 0
	})
	for _, b := range last.bodies() {
		if !slices.Contains(now, b) {
			t.Errorf("starting at the end brought %q", b)
		}
	}
	all := append(append(early, late...), now...)
	first.expect(t, all)
	restartBroker(t, topic, all)
}

func restartBroker(t *testing.T, topic string, old []string) {
	t.Helper()
	const group = "G-BrokerRestart"
	p := strict.newProducer(t)
	var before inbox
	reader := strict.newPush(t, subscription{topic: topic, group: group, listen: before.collect})
	before.expect(t, old)
	strict.awaitCommitted(t, group, topic, 2)
	if err := reader.Shutdown(); err != nil {
		t.Fatal(err)
	}
	unread := sendSome(t, p, topic, 1000, 7)
	b := strict.Brokers[0]
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	if got := strict.messagesIn(t, topic, 2); got != len(old)+len(unread) {
		t.Fatalf("%d messages after the restart, want %d", got, len(old)+len(unread))
	}
	// New clients go on where the group was, and a producer of before sends again by itself.
	var after, again inbox
	strict.newPush(t, subscription{topic: topic, group: group, listen: after.collect})
	strict.newPush(t, subscription{topic: topic, group: group + "-from-start", listen: again.collect})
	fresh := sendSome(t, p, topic, 2000, 3)
	after.expect(t, append(slices.Clone(unread), fresh...))
	again.expect(t, append(append(slices.Clone(old), unread...), fresh...))
}
