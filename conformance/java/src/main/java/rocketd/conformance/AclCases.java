package rocketd.conformance;

import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.refused;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.RPCHook;

/**
 * A broker with access control. The account "producer" has PUB for all topics, "consumer" has SUB for the cases' own topics
 * and groups, and neither has more.
 */
final class AclCases {
    private static final String EXCEPTION = "org.apache.rocketmq.acl.common.AclException: ";

    private AclCases() {
    }

    static void register() {
        Main.add("acl-push", AclCases::push);
        Main.add("acl-orderly", AclCases::orderly);
        Main.add("acl-refusals", AclCases::refusals);
        Main.add("acl-trace", AclCases::trace);
        Main.add("acl-unique-key", AclCases::uniqueKey);
    }

    static RPCHook signedBy(String accessKey, String secretKey) {
        return new AclClientRPCHook(new SessionCredentials(accessKey, secretKey));
    }

    /** Clients with other credentials must not share a client instance. */
    private static DefaultMQProducer producer(Session s, String what, RPCHook hook, boolean traced) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer(s.group(what), hook, traced, null);
        s.configure(p, what);
        p.setSendMsgTimeout(10000);
        p.setRetryTimesWhenSendFailed(0);
        p.start();
        s.atEnd(p::shutdown);
        return p;
    }

    private static DefaultMQPushConsumer consumer(Session s, String topic) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(s.group("c"), signedBy("consumer", "consumerSecret"), new AllocateMessageQueueAveragely());
        s.configure(c, "c");
        c.setConsumeFromWhere(org.apache.rocketmq.common.consumer.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setPollNameServerInterval(2000); // it learns of its new retry topic when it asks next
        c.subscribe(topic, "*");
        return c;
    }

    /** H19: a message goes back to the broker and comes again, with no more than SUB of topic and group. */
    static void push(Session s) throws Exception {
        String topic = s.createTopic(2);
        DefaultMQProducer p = producer(s, "p", signedBy("producer", "producerSecret"), false);
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            batch.add(Session.message(topic, "TagA", i));
        }
        p.send(batch);
        p.send(Session.message(topic, "TagA", 10));
        p.send(Session.message(topic, "TagA", 11), (qs, m, arg) -> qs.get(0), null, 10000);
        DefaultMQPushConsumer c = consumer(s, topic);
        Received got = new Received();
        AtomicInteger refusedOnce = new AtomicInteger();
        c.registerMessageListener((MessageListenerConcurrently) (l, x) -> {
            if (l.get(0).getReconsumeTimes() == 0 && "key-3".equals(l.get(0).getKeys())) {
                refusedOnce.incrementAndGet();
                x.setDelayLevelWhenNextConsume(1);
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            got.add(l);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        s.start(c);
        got.await(12, 60);
        equal(refusedOnce.get(), 1, "times that the message was refused");
        equal((int) got.all().stream().filter(m -> m.getReconsumeTimes() == 1).count(), 1, "messages that came again");
    }

    static void orderly(Session s) throws Exception {
        String topic = s.createTopic(1);
        DefaultMQProducer p = producer(s, "p", signedBy("producer", "producerSecret"), false);
        for (int i = 0; i < 5; i++) {
            p.send(Session.message(topic, "TagA", i));
        }
        DefaultMQPushConsumer c = consumer(s, topic);
        c.setSuspendCurrentQueueTimeMillis(100);
        Received got = new Received();
        AtomicInteger tries = new AtomicInteger();
        c.registerMessageListener((MessageListenerOrderly) (l, x) -> {
            if (tries.getAndIncrement() == 1) {
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            got.add(l);
            return ConsumeOrderlyStatus.SUCCESS;
        });
        s.start(c);
        got.await(5, 60);
        equal(SendCases.bodies(got.all()), SendCases.expectedBodies(0, 5), "bodies");
    }

    static void refusals(Session s) throws Exception {
        String topic = s.createTopic(1);
        DefaultMQProducer consumer = producer(s, "noPermission", signedBy("consumer", "consumerSecret"), false);
        refused(1, EXCEPTION + "No default permission for topic:" + topic + ",", () -> sendTo(consumer, topic));
        DefaultMQProducer wrong = producer(s, "wrongSecret", signedBy("producer", "anotherSecret"), false);
        refused(1, EXCEPTION + "Check signature failed for accessKey=producer,", () -> sendTo(wrong, topic));
        DefaultMQProducer nobody = producer(s, "unknownKey", signedBy("nobody1", "anotherSecret"), false);
        refused(1, EXCEPTION + "No acl config for nobody1,", () -> sendTo(nobody, topic));
        DefaultMQProducer unsigned = producer(s, "noKey", null, false);
        refused(1, EXCEPTION + "No accessKey is configured,", () -> sendTo(unsigned, topic));
    }

    /** To a queue of the client's choice, so that it throws what the broker says as it is. */
    private static void sendTo(DefaultMQProducer p, String topic) throws Exception {
        p.send(Session.message(topic, "TagA", 0), p.fetchPublishMessageQueues(topic).get(0));
    }

    /** Traces need no permission of their own. */
    static void trace(Session s) throws Exception {
        String topic = s.createTopic(1);
        DefaultMQProducer p = producer(s, "p", signedBy("producer", "producerSecret"), true);
        p.send(Session.message(topic, "TagA", 0));
        eventually(30, "a trace", () -> s.servers.admin.examineTopicStats("RMQ_SYS_TRACE_TOPIC").getOffsetTable().values().stream()
            .anyMatch(o -> o.getMaxOffset() > 0));
    }

    /** The client signs a field that the official server leaves out. */
    static void uniqueKey(Session s) throws Exception {
        String topic = s.createTopic(1);
        DefaultMQProducer p = producer(s, "p", signedBy("producer", "producerSecret"), false);
        SendResult sent = p.send(Session.message(topic, "TagA", 7));
        eventually(20, "the message by its unique key", () -> {
            try {
                MessageExt m = s.servers.admin.viewMessage(topic, sent.getMsgId());
                return m != null && "key-7".equals(m.getKeys());
            } catch (Exception e) {
                return false;
            }
        });
    }
}
