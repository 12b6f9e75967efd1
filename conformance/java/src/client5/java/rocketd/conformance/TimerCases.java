package rocketd.conformance;

import static rocketd.conformance.Check.bytes;
import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.text;
import static rocketd.conformance.Check.that;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages for a time of their own, which the 4.9 client does not know. The official broker is 5.3.3. */
final class TimerCases {
    /** The official broker rounds to the second below, and delivers up to some seconds later. */
    private static final long EARLY = 1100;
    private static final int PATIENCE = 30;

    private TimerCases() {
    }

    static void register() {
        Main.add("timer-delay-ms", s -> delivered(s, 3200, m -> m.setDelayTimeMs(3200)));
        Main.add("timer-delay-sec", s -> delivered(s, 3000, m -> m.setDelayTimeSec(3)));
        Main.add("timer-deliver-ms", s -> delivered(s, 2800, m -> m.setDeliverTimeMs(System.currentTimeMillis() + 2800)));
        Main.add("timer-past", s -> delivered(s, 0, m -> m.setDeliverTimeMs(System.currentTimeMillis() - 5000)));
        Main.add("timer-level-counts-more", s -> delivered(s, 1000, m -> {
            m.setDelayTimeLevel(1);
            MessageAccessor.putProperty(m, "TIMER_DELAY_SEC", "600");
        }));
        Main.add("timer-too-far", TimerCases::tooFar);
        Main.add("timer-recall", TimerCases::recall);
    }

    private interface Time {
        void set(Message m);
    }

    private static Received consume(Session s, String topic) throws Exception {
        Received got = new Received();
        DefaultMQPushConsumer c = s.consumer("c", "");
        c.subscribe(topic, "*");
        c.registerMessageListener(got.succeeding());
        s.start(c);
        return got;
    }

    /** One message that is due after some time comes then, once, as it was sent. */
    private static void delivered(Session s, long after, Time time) throws Exception {
        String topic = s.createTopic(2);
        Received got = consume(s, topic);
        Message m = new Message(topic, "TagT", "key", bytes("late"));
        m.putUserProperty("own", "value");
        time.set(m);
        long began = System.currentTimeMillis();
        SendResult sent = s.producer().send(m);
        got.await(1, PATIENCE);
        MessageExt d = got.all().get(0);
        that(System.currentTimeMillis() >= began + after - (after > 0 ? EARLY : 0), "came after %d ms, is due after %d", System.currentTimeMillis() - began, after);
        that(d.getStoreTimestamp() >= began + after - (after > 0 ? EARLY : 0), "stored after %d ms", d.getStoreTimestamp() - began);
        equal(text(d.getBody()), "late", "body");
        equal(d.getTags(), "TagT", "tag");
        equal(d.getUserProperty("own"), "value", "property");
        equal(d.getTopic(), topic, "topic");
        equal(d.getMsgId(), sent.getMsgId(), "unique key");
        equal(d.getQueueId(), sent.getMessageQueue().getQueueId(), "queue");
        boolean waited = d.getProperty("TIMER_OUT_MS") != null;
        equal(waited, after > 0 && d.getDelayTimeLevel() == 0, "waited");
        equal(d.getProperty("TIMER_ENQUEUE_MS") != null && d.getProperty("TIMER_DEQUEUE_MS") != null, waited, "times of the broker");
        equal(sent.getRecallHandle() != null, waited, "handle");
        got.nothingMore(500);
    }

    private static void tooFar(Session s) throws Exception {
        String topic = s.createTopic(1);
        for (String[] p : new String[][] {{"TIMER_DELAY_SEC", "40000000"}, {"TIMER_DELIVER_MS", "x"}}) {
            Message m = new Message(topic, bytes("x"));
            MessageAccessor.putProperty(m, p[0], p[1]);
            try {
                s.producer("p" + p[0], c -> c.setRetryTimesWhenSendFailed(0)).send(m);
                throw new AssertionError("it was taken: " + p[0]);
            } catch (MQBrokerException e) {
                equal(e.getResponseCode(), 13, "code");
                that(e.getErrorMessage().startsWith("timer message illegal, the delay time should not be bigger than the max delay "), "remark %s", e.getErrorMessage());
            }
        }
    }

    /** What is recalled does not come; what is not comes. */
    private static void recall(Session s) throws Exception {
        String topic = s.createTopic(1);
        Received got = consume(s, topic);
        DefaultMQProducer p = s.producer();
        long due = System.currentTimeMillis() + 6000;
        Message kept = new Message(topic, bytes("kept"));
        kept.setDeliverTimeMs(due);
        Message recalled = new Message(topic, bytes("recalled"));
        recalled.setDeliverTimeMs(due);
        SendResult r = p.send(recalled);
        p.send(kept);
        that(r.getRecallHandle() != null, "a handle");
        equal(p.recallMessage(topic, r.getRecallHandle()), r.getMsgId(), "what was recalled");
        got.await(1, PATIENCE);
        equal(text(got.all().get(0).getBody()), "kept", "body");
        got.nothingMore(2500);
        try {
            p.recallMessage(topic, r.getRecallHandle());
            throw new AssertionError("it was recalled after its time");
        } catch (MQBrokerException e) {
            equal(e.getResponseCode(), 604, "code");
            that(e.getErrorMessage().startsWith("recall failed, timestamp invalid"), "remark %s", e.getErrorMessage());
        }
    }
}
