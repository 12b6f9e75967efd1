package rocketd.conformance;

import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.text;
import static rocketd.conformance.Check.that;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Messages that a consumer could not handle: retry topic, delays, dead letters. */
final class RetryCases {
    private RetryCases() {
    }

    static void register() {
        Main.add("retry-default-delay", RetryCases::defaultDelay);
        Main.add("retry-own-delay", RetryCases::ownDelay);
        Main.add("retry-part-of-batch", RetryCases::partOfBatch);
        Main.add("retry-pull-send-back", RetryCases::pullSendBack);
        Main.add("dead-letter", RetryCases::deadLetter);
        Main.add("dead-letter-at-once", RetryCases::atOnce);
        Main.add("dead-letter-orderly", RetryCases::orderly);
    }

    private static final class Delivery {
        final long at = System.currentTimeMillis();
        final MessageExt message;
        final int reconsumeTimes;

        Delivery(MessageExt m) {
            message = m;
            reconsumeTimes = m.getReconsumeTimes();
        }
    }

    /** Starts a consumer that refuses every message so many times. */
    private static List<Delivery> refusing(Session s, String topic, int times, int delayLevel, int maxReconsume) throws Exception {
        List<Delivery> got = new java.util.concurrent.CopyOnWriteArrayList<>();
        DefaultMQPushConsumer c = s.consumer("c", "");
        if (maxReconsume >= 0) {
            c.setMaxReconsumeTimes(maxReconsume);
        }
        c.subscribe(topic, "*");
        c.registerMessageListener((MessageListenerConcurrently) (l, ctx) -> {
            ctx.setDelayLevelWhenNextConsume(delayLevel);
            boolean refuse = false;
            for (MessageExt m : l) {
                refuse |= m.getReconsumeTimes() < times;
                got.add(new Delivery(m));
            }
            return refuse ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        s.start(c);
        return got;
    }

    private static void checkDelays(List<Delivery> got, String topic, SendResult sent, String body, long... delays) {
        equal(got.size(), delays.length + 1, "deliveries");
        for (int i = 0; i < got.size(); i++) {
            Delivery d = got.get(i);
            equal(d.reconsumeTimes, i, "reconsumeTimes of delivery %d", i);
            equal(d.message.getTopic(), topic, "topic of delivery %d", i);
            equal(text(d.message.getBody()), body, "body of delivery %d", i);
            equal(d.message.getTags(), "TagR", "tags of delivery %d", i);
            equal(d.message.getKeys(), "key-r", "keys of delivery %d", i);
            equal(d.message.getUserProperty("own"), "kept", "property of delivery %d", i);
            equal(d.message.getMsgId(), sent.getMsgId(), "msgId of delivery %d", i);
            if (i > 0) {
                equal(d.message.getProperty("ORIGIN_MESSAGE_ID"), sent.getOffsetMsgId(), "origin of delivery %d", i);
                long took = d.at - got.get(i - 1).at;
                // A client that misses its moment to rebalance gets the retry topic only 20 s later.
                that(took >= delays[i - 1] - 50 && took < delays[i - 1] + 40_000, "at least %d ms, not much more, before delivery %d, took %d",
                    delays[i - 1], i, took);
            }
        }
    }

    private static Message failing(String topic) {
        Message m = new Message(topic, "TagR", "key-r", Check.bytes("refused"));
        m.putUserProperty("own", "kept");
        return m;
    }

    /** Left to the broker, the first retry comes after level 3, 10 s. */
    static void defaultDelay(Session s) throws Exception {
        String topic = s.createTopic(2);
        s.knownGroup("c", topic);
        SendResult sent = s.producer().send(failing(topic));
        List<Delivery> got = refusing(s, topic, 1, 0, -1);
        eventually(60, "2 deliveries", () -> got.size() >= 2);
        checkDelays(got, topic, sent, "refused", 10000);
    }

    static void ownDelay(Session s) throws Exception {
        String topic = s.createTopic(2);
        s.knownGroup("c", topic);
        SendResult sent = s.producer().send(failing(topic));
        List<Delivery> got = refusing(s, topic, 3, 1, -1);
        eventually(60, "4 deliveries", () -> got.size() >= 4);
        checkDelays(got, topic, sent, "refused", 1000, 1000, 1000);
        // The group's offset in the retry topic moves like any other.
        MessageQueue retry = new MessageQueue("%RETRY%" + s.group("c"), Servers.A, 0);
        eventually(25, "offset 3 in the retry topic", () -> s.committed("c", retry) == 3);
    }

    static void partOfBatch(Session s) throws Exception {
        String topic = s.createTopic(1);
        s.knownGroup("c", topic);
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            batch.add(Session.message(topic, "TagA", i));
        }
        s.producer().send(batch);
        DefaultMQPushConsumer c = s.consumer("c", "");
        c.setConsumeMessageBatchMaxSize(4);
        c.subscribe(topic, "*");
        Received first = new Received();
        Received again = new Received();
        c.registerMessageListener((MessageListenerConcurrently) (l, ctx) -> {
            ctx.setDelayLevelWhenNextConsume(1);
            if (l.get(0).getReconsumeTimes() == 0) {
                first.add(l);
                ctx.setAckIndex(1); // the first two are done, the others come again
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            }
            again.add(l);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        s.start(c);
        first.await(4, 20);
        again.await(2, 20);
        equal(SendCases.bodies(again.all()), SendCases.expectedBodies(2, 4), "bodies that come again");
        again.nothingMore(500);
        equal(first.size(), 4, "first deliveries");
    }

    static void pullSendBack(Session s) throws Exception {
        String topic = s.createTopic(1);
        SendResult sent = s.producer().send(failing(topic));
        DefaultMQPullConsumer c = s.puller("c", x -> x.setRegisterTopics(Set.of(topic)));
        MessageQueue q = s.queues(topic, Servers.A).get(0);
        MessageExt m = c.pull(q, "*", 0, 32).getMsgFoundList().get(0);
        // The broker creates the group by the heartbeat, and the retry topic with it.
        eventually(20, "the group's retry topic", () -> routed(s, "%RETRY%" + s.group("c")));
        c.sendMessageBack(m, 1, Servers.A, s.group("c"));
        List<MessageExt> back = s.readUntil("%RETRY%" + s.group("c"), 1, 20);
        MessageExt b = back.get(0);
        equal(b.getReconsumeTimes(), 1, "reconsumeTimes");
        equal(b.getProperty("RETRY_TOPIC"), topic, "RETRY_TOPIC");
        equal(b.getProperty("ORIGIN_MESSAGE_ID"), sent.getOffsetMsgId(), "ORIGIN_MESSAGE_ID");
        equal(b.getMsgId(), sent.getMsgId(), "msgId");
        equal(text(b.getBody()), "refused", "body");
        equal(b.getUserProperty("own"), "kept", "property");
    }

    private static boolean routed(Session s, String topic) throws Exception {
        try {
            return !s.servers.admin.examineTopicRouteInfo(topic).getQueueDatas().isEmpty();
        } catch (MQClientException e) {
            return false;
        }
    }

    /** What is in a group's dead-letter topic, once it holds so many. */
    private static List<MessageExt> deadLetters(Session s, String group, int count) throws Exception {
        String topic = "%DLQ%" + s.group(group);
        eventually(60, "a route of " + topic, () -> routed(s, topic));
        return s.readUntil(topic, count, 30);
    }

    private static void checkDead(MessageExt d, String topic, SendResult sent) {
        equal(text(d.getBody()), "refused", "body of the dead letter");
        equal(d.getMsgId(), sent.getMsgId(), "msgId");
        equal(d.getTags(), "TagR", "tags");
        equal(d.getKeys(), "key-r", "keys");
        equal(d.getUserProperty("own"), "kept", "property");
        equal(d.getProperty("RETRY_TOPIC"), topic, "RETRY_TOPIC");
        equal(d.getQueueId(), 0, "queue");
    }

    static void deadLetter(Session s) throws Exception {
        String topic = s.createTopic(2);
        s.knownGroup("c", topic);
        SendResult sent = s.producer().send(failing(topic));
        List<Delivery> got = refusing(s, topic, Integer.MAX_VALUE, 1, 2);
        MessageExt dead = deadLetters(s, "c", 1).get(0);
        checkDead(dead, topic, sent);
        equal(dead.getProperty("ORIGIN_MESSAGE_ID"), sent.getOffsetMsgId(), "ORIGIN_MESSAGE_ID");
        equal(dead.getReconsumeTimes(), 3, "reconsumeTimes");
        checkDelays(got, topic, sent, "refused", 1000, 1000);
        equal(s.servers.admin.examineTopicRouteInfo("%DLQ%" + s.group("c")).getQueueDatas().get(0).getWriteQueueNums(), 1, "queues");
    }

    static void atOnce(Session s) throws Exception {
        String topic = s.createTopic(2);
        s.knownGroup("c", topic);
        SendResult sent = s.producer().send(failing(topic));
        List<Delivery> got = refusing(s, topic, Integer.MAX_VALUE, -1, -1);
        checkDead(deadLetters(s, "c", 1).get(0), topic, sent);
        equal(got.size(), 1, "deliveries");
    }

    /**
     * An ordered consumer tries again in its place, and then sends the message to its retry topic by itself, with
     * delay level 3 + attempts. The broker buries it instead, but the delay stays: 10 s without a second attempt.
     */
    static void orderly(Session s) throws Exception {
        String topic = s.createTopic(1);
        s.knownGroup("c", topic);
        DefaultMQProducer p = s.producer();
        MessageQueue q = s.queues(topic, Servers.A).get(0);
        SendResult sent = p.send(failing(topic), q);
        p.send(Session.message(topic, "TagA", 1), q);
        DefaultMQPushConsumer c = s.consumer("c", "");
        c.setMaxReconsumeTimes(0);
        c.setSuspendCurrentQueueTimeMillis(100);
        c.subscribe(topic, "*");
        List<Integer> attempts = new java.util.concurrent.CopyOnWriteArrayList<>();
        Set<String> done = ConcurrentHashMap.newKeySet();
        c.registerMessageListener((MessageListenerOrderly) (l, ctx) -> {
            if ("TagR".equals(l.get(0).getTags())) {
                attempts.add(l.get(0).getReconsumeTimes());
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            done.addAll(l.stream().map(m -> text(m.getBody())).collect(Collectors.toSet()));
            return ConsumeOrderlyStatus.SUCCESS;
        });
        s.start(c);
        checkDead(deadLetters(s, "c", 1).get(0), topic, sent);
        equal(attempts, List.of(0), "reconsumeTimes of the attempts");
        eventually(20, "the message behind it", () -> done.equals(Set.of("body 1")));
    }
}
