package rocketd.conformance;

import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.refused;
import static rocketd.conformance.Check.text;
import static rocketd.conformance.Check.that;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Finding messages by key, by unique key and by offset id. */
final class QueryCases {
    private static final int NO_MESSAGE = 208;

    private QueryCases() {
    }

    static void register() {
        Main.add("query-by-key", QueryCases::byKey);
        Main.add("view-by-id", QueryCases::byId);
    }

    /** The index follows the log asynchronously. */
    private static List<MessageExt> query(DefaultMQProducer p, String topic, String key, int max, long begin, long end, int expect)
        throws Exception {
        List<MessageExt> found = new ArrayList<>();
        eventually(15, expect + " messages with key " + key, () -> {
            found.clear();
            try {
                found.addAll(p.queryMessage(topic, key, max, begin, end).getMessageList());
            } catch (MQClientException e) {
                equal(e.getResponseCode(), NO_MESSAGE, "code of nothing found");
            }
            return found.size() >= expect;
        });
        equal(found.size(), expect, "messages with key %s", key);
        return found;
    }

    static void byKey(Session s) throws Exception {
        String topic = s.createTopic(4);
        String other = s.createTopic("-other", 1, 1, 6, Servers.A);
        DefaultMQProducer p = s.producer();
        // The index has whole seconds, rounded down.
        long begin = System.currentTimeMillis() - 2000;
        for (int i = 0; i < 12; i++) {
            p.send(new Message(topic, "TagA", "own-" + i + " shared third-" + i % 3, Check.bytes("body " + i)));
        }
        p.send(new Message(other, "TagA", "shared", Check.bytes("other")));
        long end = System.currentTimeMillis() + 60000;
        List<MessageExt> shared = query(p, topic, "shared", 32, begin, end, 12);
        equal(SendCases.bodies(shared), SendCases.expectedBodies(0, 12), "bodies by the shared key");
        for (MessageExt m : shared) {
            equal(m.getTopic(), topic, "topic");
        }
        equal(text(query(p, topic, "own-7", 32, begin, end, 1).get(0).getBody()), "body 7", "body by its own key");
        equal(query(p, topic, "third-1", 32, begin, end, 4).size(), 4, "by a key that four have");
        equal(query(p, topic, "shared", 5, begin, end, 5).size(), 5, "at most five");
        equal(text(query(p, other, "shared", 32, begin, end, 1).get(0).getBody()), "other", "body of the other topic");
        refused(NO_MESSAGE, "no message", () -> p.queryMessage(topic, "no-such-key", 32, begin, end));
        // Nothing was stored an hour ago.
        refused(NO_MESSAGE, "no message", () -> p.queryMessage(topic, "shared", 32, begin - 7200_000, begin - 3600_000));
    }

    static void byId(Session s) throws Exception {
        String topic = s.createTopic(2);
        DefaultMQProducer p = s.producer();
        List<SendResult> sent = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            sent.add(p.send(Session.message(topic, "Tag" + i, i)));
        }
        Message big = new Message(topic, "TagBig", "key-big", SendCases.lines(50000));
        SendResult bigSent = p.send(big);
        for (int i = 0; i < 5; i++) {
            SendResult r = sent.get(i);
            MessageExt byOffset = p.viewMessage(topic, r.getOffsetMsgId());
            equal(text(byOffset.getBody()), "body " + i, "body by offset id");
            equal(byOffset.getTags(), "Tag" + i, "tags");
            equal(byOffset.getQueueOffset(), r.getQueueOffset(), "queueOffset");
            equal(byOffset.getMsgId(), r.getMsgId(), "msgId by offset id");
        }
        equal(p.viewMessage(topic, bigSent.getOffsetMsgId()).getBody().length, 50000, "length of a compressed body");
        Set<String> found = new HashSet<>();
        for (SendResult r : sent) {
            eventually(15, "a message of unique key " + r.getMsgId(), () -> {
                try {
                    MessageExt m = p.viewMessage(topic, r.getMsgId());
                    if (m == null) {
                        return false;
                    }
                    equal(m.getMsgId(), r.getMsgId(), "msgId");
                    equal(m.getCommitLogOffset(), p.viewMessage(topic, r.getOffsetMsgId()).getCommitLogOffset(), "physical offset");
                    found.add(text(m.getBody()));
                    return true;
                } catch (MQClientException e) {
                    return false;
                }
            });
        }
        equal(found, SendCases.expectedBodies(0, 5), "bodies by unique key");
        // An offset id that points into nothing.
        String none = sent.get(0).getOffsetMsgId().substring(0, 16) + "7FFFFFFFFFFFFF00";
        try {
            MessageExt m = p.viewMessage(topic, none);
            that(m == null, "no message at %s", none);
        } catch (Exception e) {
            that(e instanceof org.apache.rocketmq.client.exception.MQBrokerException || e instanceof MQClientException,
                "an answer for %s, got %s", none, e);
        }
    }
}
