package rocketd.conformance;

import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;

import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/**
 * Where a new group begins. The broker itself answers 0 to a group without an offset while the queue's first
 * message is still in memory; only broker B, with accessMessageInMemoryMaxRatio=0, never thinks so, and leaves
 * the choice to the client.
 */
final class StartPointCases {
    private StartPointCases() {
    }

    static void register() {
        Main.add("start-from-first", StartPointCases::first);
        Main.add("start-from-last", StartPointCases::last);
        Main.add("start-from-timestamp", StartPointCases::timestamp);
        Main.add("start-from-last-of-young-queue", StartPointCases::young);
    }

    private static Received started(Session s, String topic, ConsumeFromWhere where, Session.Tuning<DefaultMQPushConsumer> t, int queues)
        throws Exception {
        DefaultMQPushConsumer c = s.consumer("c", "-consumer");
        c.setConsumeFromWhere(where);
        t.tune(c);
        c.subscribe(topic, "*");
        Received got = new Received();
        c.registerMessageListener(got.succeeding());
        s.start(c);
        // A queue enters this table when its first offset has been found.
        eventually(20, queues + " queues assigned", () ->
            c.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet().stream()
                .filter(q -> q.getTopic().equals(topic)).count() == queues);
        return got;
    }

    static void first(Session s) throws Exception {
        String topic = s.createTopic("", 2, 2, 6, Servers.B);
        s.send(topic, 20);
        Received got = started(s, topic, ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, c -> { }, 2);
        got.await(20, 20);
        equal(SendCases.bodies(got.all()), SendCases.expectedBodies(0, 20), "bodies");
    }

    static void last(Session s) throws Exception {
        String topic = s.createTopic("", 2, 2, 6, Servers.B);
        s.send(topic, 20);
        Received got = started(s, topic, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, c -> { }, 2);
        DefaultMQProducer p = s.producer();
        for (int i = 100; i < 110; i++) {
            p.send(Session.message(topic, "TagA", i));
        }
        got.await(10, 20);
        equal(SendCases.bodies(got.all()), SendCases.expectedBodies(100, 110), "bodies: only what came after the start");
        got.nothingMore(500);
    }

    static void timestamp(Session s) throws Exception {
        String topic = s.createTopic("", 1, 1, 6, Servers.B);
        DefaultMQProducer p = s.producer();
        for (int i = 0; i < 10; i++) {
            p.send(Session.message(topic, "TagA", i));
        }
        // The setting has seconds, and the nearest message counts: the second half is sent right at a full second.
        long from = System.currentTimeMillis() / 1000 + 3;
        eventually(10, "the full second", () -> System.currentTimeMillis() >= from * 1000);
        for (int i = 10; i < 20; i++) {
            p.send(Session.message(topic, "TagA", i));
        }
        String stamp = DateTimeFormatter.ofPattern("yyyyMMddHHmmss").withZone(ZoneId.systemDefault()).format(Instant.ofEpochSecond(from));
        Received got = started(s, topic, ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, c -> c.setConsumeTimestamp(stamp), 1);
        got.await(10, 20);
        equal(SendCases.bodies(got.all()), SendCases.expectedBodies(10, 20), "bodies: the second half");
        got.nothingMore(500);
    }

    static void young(Session s) throws Exception {
        String topic = s.createTopic(2);
        s.send(topic, 20);
        Received got = started(s, topic, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, c -> { }, 2);
        got.await(20, 20);
        equal(SendCases.bodies(got.all()), SendCases.expectedBodies(0, 20), "bodies");
    }
}
