package rocketd.conformance;

import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.text;
import static rocketd.conformance.Check.that;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * DefaultLitePullConsumer, with queues assigned by hand and by subscription. That of 5.x pulls with LITE_PULL_MESSAGE
 * (361), which a 4.9 broker refuses with code 3.
 */
final class LitePullCases {
    private LitePullCases() {
    }

    static void register() {
        Main.add("lite-pull-assign", LitePullCases::assign);
        Main.add("lite-pull-subscribe", LitePullCases::subscribe);
        Main.add("lite-pull-rebalance", LitePullCases::rebalance);
    }

    private static DefaultLitePullConsumer consumer(Session s, String instance) {
        DefaultLitePullConsumer c = new DefaultLitePullConsumer(s.group("c"));
        s.configure(c, instance);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return c;
    }

    /** Polls until so many have come. */
    private static List<MessageExt> poll(DefaultLitePullConsumer c, int count) throws Exception {
        List<MessageExt> got = new ArrayList<>();
        eventually(30, count + " messages polled", () -> {
            got.addAll(c.poll(200));
            return got.size() >= count;
        });
        equal(got.size(), count, "messages polled");
        return got;
    }

    static void assign(Session s) throws Exception {
        String topic = s.createTopic(4);
        s.send(topic, 40);
        // The group stands at offset 4: seeking there while the client already fetches would be a race in the client.
        DefaultMQPullConsumer mover = s.puller("c");
        for (MessageQueue q : s.queues(topic, Servers.A)) {
            mover.updateConsumeOffset(q, 4);
            mover.getOffsetStore().persist(q);
            eventually(10, "offset 4 of " + q, () -> s.committed("c", q) == 4);
        }
        DefaultLitePullConsumer c = consumer(s, "-lite");
        c.setAutoCommit(false);
        c.start();
        s.atEnd(c::shutdown);
        Collection<MessageQueue> all = c.fetchMessageQueues(topic);
        equal(all.size(), 4, "queues");
        c.assign(all);
        for (MessageExt m : poll(c, 24)) {
            that(m.getQueueOffset() >= 4, "offsets from 4, got %d", m.getQueueOffset());
        }
        c.commitSync();
        for (MessageQueue q : all) {
            eventually(25, "offset 10 of " + q, () -> s.committed("c", q) == 10);
        }
        MessageQueue one = all.iterator().next();
        c.seekToBegin(one);
        for (MessageExt m : poll(c, 10)) {
            equal(m.getQueueId(), one.getQueueId(), "queue sought in");
        }
        c.seekToEnd(one);
        equal(c.poll(500).size(), 0, "messages at the end");
        s.producer().send(Session.message(topic, "TagA", 100), one);
        equal(text(poll(c, 1).get(0).getBody()), "body 100", "body");
        long stored = s.readQueue(one, 11).get(3).getStoreTimestamp();
        that(c.offsetForTimestamp(one, stored) <= 3, "the offset for a time");
        equal(c.offsetForTimestamp(one, System.currentTimeMillis() - 3600_000), 0L, "the offset for an hour ago");
    }

    static void subscribe(Session s) throws Exception {
        String topic = s.createTopic(4);
        DefaultMQProducer p = s.producer();
        for (int i = 0; i < 30; i++) {
            p.send(Session.message(topic, "Tag" + (char) ('A' + i % 3), i));
        }
        DefaultLitePullConsumer c = consumer(s, "-lite");
        c.setAutoCommitIntervalMillis(1000);
        c.subscribe(topic, "TagA || TagB");
        c.start();
        List<MessageExt> got = poll(c, 20);
        for (MessageExt m : got) {
            that(!"TagC".equals(m.getTags()), "no TagC");
        }
        equal(SendCases.bodies(got).size(), 20, "different bodies");
        c.commitSync();
        c.shutdown();
        // The next instance goes on where this one ended.
        p.send(Session.message(topic, "TagA", 100));
        DefaultLitePullConsumer again = consumer(s, "-again");
        again.subscribe(topic, "TagA || TagB");
        again.start();
        s.atEnd(again::shutdown);
        equal(text(poll(again, 1).get(0).getBody()), "body 100", "body after a restart");
        equal(again.poll(500).size(), 0, "messages after that");
    }

    static void rebalance(Session s) throws Exception {
        String topic = s.createTopic(4);
        DefaultLitePullConsumer[] c = {consumer(s, "-0"), consumer(s, "-1")};
        for (DefaultLitePullConsumer one : c) {
            one.subscribe(topic, "*");
            one.start();
            s.atEnd(one::shutdown);
        }
        eventually(15, "two queues each", () -> c[0].assignment().size() == 2 && c[1].assignment().size() == 2);
        s.send(topic, 20);
        List<MessageExt> got = poll(c[0], 10);
        got.addAll(poll(c[1], 10));
        equal(SendCases.bodies(got), SendCases.expectedBodies(0, 20), "bodies");
    }
}
