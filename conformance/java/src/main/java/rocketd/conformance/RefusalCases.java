package rocketd.conformance;

import static rocketd.conformance.Check.bytes;
import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.refused;

import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** What the server must refuse, with the official code and remark, and without storing anything. */
final class RefusalCases {
    private static final int SYSTEM_ERROR = 1;
    private static final int MESSAGE_ILLEGAL = 13;
    private static final int NO_PERMISSION = 16;
    private static final int TOPIC_NOT_EXIST = 17;
    /** The client's own code. */
    private static final int NOT_FOUND_TOPIC = 10005;

    private RefusalCases() {
    }

    static void register() {
        Main.add("refuse-oversize", RefusalCases::oversize);
        Main.add("refuse-topic-names", RefusalCases::topicNames);
        Main.add("refuse-queue-ids", RefusalCases::queueIds);
        Main.add("refuse-unknown-topic", RefusalCases::unknownTopic);
        Main.add("refuse-without-route", RefusalCases::noRoute);
        Main.add("refuse-by-permission", RefusalCases::permission);
        Main.add("refuse-disabled-group", RefusalCases::disabledGroup);
        Main.add("refuse-sql92", RefusalCases::sql92);
    }

    static void oversize(Session s) throws Exception {
        String topic = s.createTopic(1);
        DefaultMQProducer p = s.producer("p", x -> {
            x.setMaxMessageSize(16 << 20);
            x.setCompressMsgBodyOverHowmuch(16 << 20);
        });
        String illegal = "the message is illegal, maybe msg body or properties length not matched."
            + " msg body length limit 4194304B, msg properties length limit 32KB.";
        refused(MESSAGE_ILLEGAL, illegal, () -> p.send(new Message(topic, SendCases.noise((4 << 20) + 1))));
        Message m = new Message(topic, bytes("x"));
        m.putUserProperty("big", new String(new char[32768]).replace('\0', 'x'));
        refused(MESSAGE_ILLEGAL, illegal, () -> p.send(m));
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            batch.add(new Message(topic, SendCases.noise(1 << 20)));
        }
        refused(MESSAGE_ILLEGAL, illegal, () -> p.send(batch));
        s.readAll(topic, 0);
        p.send(new Message(topic, SendCases.noise(4 << 20)));
        s.readAll(topic, 1);
    }

    static void topicNames(Session s) {
        String[][] names = {
            {"illegal$char", "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"},
            {"a b", "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"},
            {new String(new char[128]).replace('\0', 't'), "The specified topic is longer than topic max length."},
            {"SCHEDULE_TOPIC_XXXX", "The topic[SCHEDULE_TOPIC_XXXX] is conflict with system topic."},
            {"TBW102", "The topic[TBW102] is conflict with system topic."},
        };
        for (String[] n : names) {
            try {
                refused(SYSTEM_ERROR, n[1], () ->
                    s.servers.admin.createAndUpdateTopicConfig(s.servers.addr(Servers.A), new TopicConfig(n[0], 1, 1, 6)));
            } catch (Exception e) {
                throw new AssertionError(n[0] + ": " + e, e);
            }
        }
    }

    static void queueIds(Session s) throws Exception {
        String topic = s.createTopic(2);
        DefaultMQProducer p = s.producer();
        p.send(Session.message(topic, "TagA", 0));
        MessageQueue none = new MessageQueue(topic, Servers.A, 2);
        refused(SYSTEM_ERROR, "request queueId[2] is illegal, TopicConfig [topicName=" + topic, () -> p.send(Session.message(topic, "TagA", 1), none));
        DefaultMQPullConsumer c = s.puller("c");
        refused(SYSTEM_ERROR, "queueId[2] is illegal, topic:[" + topic + "] topicConfig.readQueueNums:[2] consumer:[/127.0.0.1:",
            () -> c.pull(none, "*", 0, 32));
        s.readAll(topic, 1);
    }

    static void unknownTopic(Session s) throws Exception {
        String topic = s.topic("-missing");
        // Broker B creates no topics. The client knows its address from an earlier route.
        String other = s.createTopic("", 1, 1, 6, Servers.B);
        DefaultMQProducer p = s.producer();
        p.send(Session.message(other, "TagA", 0));
        MessageQueue q = new MessageQueue(topic, Servers.B, 0);
        String remark = "topic[" + topic + "] not exist, apply first please!";
        refused(TOPIC_NOT_EXIST, remark, () -> p.send(Session.message(topic, "TagA", 0), q));
        DefaultMQPullConsumer c = s.puller("c");
        c.maxOffset(new MessageQueue(other, Servers.B, 0));
        refused(TOPIC_NOT_EXIST, remark, () -> c.pull(q, "*", 0, 32));
    }

    static void noRoute(Session s) throws Exception {
        String topic = s.topic("-missing");
        DefaultMQProducer p = s.producer("p", x -> x.setCreateTopicKey(s.topic("-no-default-topic")));
        // The 5.x client takes the route of TBW102 whatever its key is, so there the broker refuses.
        refused(OnlyHere.CLIENT5 ? TOPIC_NOT_EXIST : NOT_FOUND_TOPIC, "", () -> p.send(Session.message(topic, "TagA", 0)));
        DefaultMQPullConsumer c = s.puller("c");
        refused(-1, "Can not find Message Queue for this topic, " + topic, () -> c.fetchSubscribeMessageQueues(topic));
        refused(TOPIC_NOT_EXIST, "No topic route info in name server for the topic: " + topic,
            () -> s.servers.admin.examineTopicRouteInfo(topic));
    }

    static void permission(Session s) throws Exception {
        String readOnly = s.createTopic("-r", 1, 1, 4, Servers.A);
        DefaultMQProducer p = s.producer();
        // With the route the client sees no queue to write to; addressed directly, the broker takes it: it looks only
        // at its own permission, and only for order topics.
        refused(NOT_FOUND_TOPIC, "No route info of this topic", () -> p.send(Session.message(readOnly, "TagA", 0)));
        p.send(Session.message(readOnly, "TagA", 1), new MessageQueue(readOnly, Servers.A, 0));
        s.readAll(readOnly, 1);
        String writeOnly = s.createTopic("-w", 1, 1, 2, Servers.A);
        p.send(Session.message(writeOnly, "TagA", 0));
        DefaultMQPullConsumer c = s.puller("c");
        refused(NO_PERMISSION, "the topic[" + writeOnly + "] pulling message is forbidden",
            () -> c.pull(new MessageQueue(writeOnly, Servers.A, 0), "*", 0, 32));
    }

    /** enablePropertyFilter is off by default. */
    static void sql92(Session s) throws Exception {
        String topic = s.createTopic("", 1, 1, 6, Servers.B);
        var c = s.consumer("c", "");
        c.subscribe(topic, MessageSelector.bySql("a > 1"));
        c.registerMessageListener(new Received().succeeding());
        refused(SYSTEM_ERROR, "The broker does not support consumer to filter message by SQL92", () -> s.start(c));
    }

    static void disabledGroup(Session s) throws Exception {
        String topic = s.createTopic(1);
        s.send(topic, 1);
        OnlyHere.createGroup(s.servers, Servers.A, s.group("c"), false);
        DefaultMQPullConsumer c = s.puller("c");
        MessageQueue q = s.queues(topic, Servers.A).get(0);
        refused(NO_PERMISSION, "subscription group no permission, " + s.group("c"), () -> c.pull(q, "*", 0, 32));
        OnlyHere.createGroup(s.servers, Servers.A, s.group("c"), true);
        equal(c.pull(q, "*", 0, 32).getMsgFoundList().size(), 1, "messages once the group is enabled");
    }
}
