package rocketd.conformance;

import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.text;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * The broker goes and comes back while its clients stay. Run apart from the others, as they take brokers A and C away.
 * A pull that is under way when the connection closes is missed by the Java client only after 30 s.
 */
final class RestartCases {
    private RestartCases() {
    }

    static void register() {
        Main.add("restart-stopped", s -> restart(s, "stop", Servers.A));
        Main.add("restart-killed", s -> restart(s, "kill", Servers.C));
    }

    static void restart(Session s, String how, String broker) throws Exception {
        String topic = s.createTopic("", 2, 2, 6, broker);
        List<MessageQueue> qs = s.queues(topic, broker);
        DefaultMQProducer p = s.producer("p", x -> x.setRetryTimesWhenSendFailed(5));
        SendResult first = p.send(Session.message(topic, "TagA", 0), qs.get(0));
        for (int i = 1; i < 20; i++) {
            p.send(Session.message(topic, "TagA", i), qs.get(i % 2));
        }
        DefaultMQPushConsumer c = s.consumer("c", "-stays");
        c.subscribe(topic, "*");
        Received got = new Received();
        c.registerMessageListener(got.succeeding());
        s.start(c);
        got.await(20, 30);
        DefaultMQPushConsumer done = s.consumer("done", "-done");
        done.subscribe(topic, "*");
        Received had = new Received();
        done.registerMessageListener(had.succeeding());
        done.start();
        had.await(20, 30);
        done.shutdown();
        for (MessageQueue q : qs) {
            eventually(10, "offset 10 of " + q, () -> s.committed("done", q) == 10);
        }
        if (how.equals("kill")) {
            // Offsets go to the disk every five seconds (flushConsumerOffsetInterval).
            Thread.sleep(6500);
        }
        Message delayed = Session.message(topic, "TagD", 100);
        delayed.setDelayTimeLevel(2);
        p.send(delayed);
        List<MessageExt> before = s.readAll(topic, 20);

        s.servers.ask(how, broker);
        s.servers.ask("start", broker);

        // Everything is still there, in its place.
        s.awaitRoute(topic, broker, 2, 6);
        eventually(30, "an answer of the broker to a client that stayed", () -> {
            try {
                return s.reader().minOffset(qs.get(0)) == 0;
            } catch (Exception e) {
                return false;
            }
        });
        List<MessageExt> after = s.readNow(topic);
        for (int i = 0; i < 20; i++) {
            MessageExt b = before.get(i);
            MessageExt a = after.stream().filter(m -> m.getMsgId().equals(b.getMsgId())).findFirst().orElse(null);
            Check.that(a != null, "message %s", b);
            equal(text(a.getBody()), text(b.getBody()), "body");
            equal(a.getQueueId() + "/" + a.getQueueOffset() + "/" + a.getCommitLogOffset(),
                b.getQueueId() + "/" + b.getQueueOffset() + "/" + b.getCommitLogOffset(), "place");
            equal(a.getStoreTimestamp(), b.getStoreTimestamp(), "storeTimestamp");
        }
        equal(text(p.viewMessage(topic, first.getOffsetMsgId()).getBody()), "body 0", "body by offset id");
        equal(text(p.viewMessage(topic, first.getMsgId()).getBody()), "body 0", "body by unique key");
        for (MessageQueue q : qs) {
            equal(s.committed("done", q), 10L, "offset of the group that was done, in %s", q);
        }
        // The clients that stayed go on: the delayed message is delivered, new ones follow.
        Set<String> want = SendCases.expectedBodies(0, 20);
        want.add("body 100");
        eventually(50, "the delayed message", () -> bodies(got).equals(want));
        SendResult next = p.send(Session.message(topic, "TagA", 200));
        Check.that(next.getQueueOffset() >= 10, "queueOffset after those before, got %d", next.getQueueOffset());
        want.add("body 200");
        eventually(30, "a message sent after the restart", () -> bodies(got).equals(want));
        // All of it is in the topic; what was delivered or sent around the kill may be there twice.
        Set<String> stored = new HashSet<>();
        s.readNow(topic).forEach(m -> stored.add(text(m.getBody())));
        equal(stored, want, "bodies in the topic");
    }

    private static Set<String> bodies(Received r) {
        Set<String> b = new HashSet<>();
        r.all().forEach(m -> b.add(text(m.getBody())));
        return b;
    }
}
