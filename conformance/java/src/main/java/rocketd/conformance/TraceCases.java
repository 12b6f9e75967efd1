package rocketd.conformance;

import static rocketd.conformance.Check.bytes;
import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.text;
import static rocketd.conformance.Check.that;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.trace.TraceBean;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.client.trace.TraceType;
import org.apache.rocketmq.client.trace.TraceView;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageType;

/**
 * Clients that trace their messages. Broker A makes the trace topic (traceTopicEnable=true) and has a region of its own;
 * broker C asks for no traces (traceOn=false).
 */
final class TraceCases {
    static final String TOPIC = "RMQ_SYS_TRACE_TOPIC";
    private static final String REGION = "RegionA";

    private TraceCases() {
    }

    static void register() {
        Main.add("trace-whole-way", TraceCases::wholeWay);
        Main.add("trace-transaction", TraceCases::transaction);
        Main.add("trace-own-topic", TraceCases::ownTopic);
        Main.add("trace-off", TraceCases::off);
    }

    private static DefaultMQProducer producer(Session s, String traceTopic) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer(null, s.group("p"), null, true, traceTopic);
        return started(s, p);
    }

    private static <T extends DefaultMQProducer> T started(Session s, T p) throws Exception {
        s.configure(p, "-traced");
        p.setPollNameServerInterval(2000); // or a retry waits half a minute for its route
        p.setSendMsgTimeout(10000);
        p.start();
        s.atEnd(p::shutdown);
        return p;
    }

    /** What is stored under a message's id, as mqadmin queryMsgTraceById finds it, oldest first. */
    private static List<TraceContext> traces(Session s, String topic, String msgId) throws Exception {
        List<TraceContext> all = new ArrayList<>();
        List<MessageExt> stored;
        try {
            stored = s.servers.admin.queryMessage(topic, msgId, 64, 0, System.currentTimeMillis() + 3_600_000).getMessageList();
        } catch (MQClientException e) {
            return all; // nothing yet
        }
        for (MessageExt m : stored) {
            for (TraceContext c : TraceDataEncoder.decoderFromTraceDataString(text(m.getBody()))) {
                if (c.getTraceBeans().stream().anyMatch(b -> b.getMsgId().equals(msgId))) {
                    all.add(c);
                }
            }
        }
        all.sort((a, b) -> Long.compare(a.getTimeStamp(), b.getTimeStamp()));
        return all;
    }

    private static List<TraceContext> await(Session s, String topic, String msgId, int count) throws Exception {
        List<List<TraceContext>> last = new ArrayList<>();
        try {
            eventually(60, count + " traces of " + msgId, () -> {
                last.clear();
                last.add(traces(s, topic, msgId));
                return last.get(0).size() >= count;
            });
        } catch (AssertionError e) {
            throw new AssertionError(e.getMessage() + ", got " + last.get(0).stream().map(c -> c.getTraceType() + " " + c.getRequestId() + " "
                + c.isSuccess()).collect(Collectors.toList()));
        }
        equal(last.get(0).size(), count, "traces of %s", msgId);
        return last.get(0);
    }

    private static List<TraceContext> of(List<TraceContext> all, TraceType type) {
        return all.stream().filter(c -> c.getTraceType() == type).collect(Collectors.toList());
    }

    private static TraceBean bean(TraceContext c) {
        equal(c.getTraceBeans().size(), 1, "messages in one trace");
        return c.getTraceBeans().get(0);
    }

    /** Sent, consumed in vain, consumed again: all of it is found by the id. */
    private static void wholeWay(Session s) throws Exception {
        String topic = s.createTopic(1);
        DefaultMQProducer p = producer(s, null);
        SendResult sent = p.send(new Message(topic, "TagA", "key-1 key-2", bytes("traced")));
        equal(sent.getRegionId(), REGION, "region of the answer");
        that(sent.isTraceOn(), "an answer that asks for traces");
        TraceContext pub = of(await(s, TOPIC, sent.getMsgId(), 1), TraceType.Pub).get(0);
        equal(pub.getRegionId(), REGION, "region of the producer's trace");
        equal(pub.getGroupName(), s.group("p"), "producer group");
        that(pub.isSuccess(), "a successful send");
        TraceBean b = bean(pub);
        equal(b.getTopic(), topic, "topic");
        equal(b.getTags(), "TagA", "tags");
        equal(b.getKeys(), "key-1 key-2", "keys");
        equal(b.getStoreHost(), s.servers.addr(Servers.A), "store host");
        equal(b.getOffsetMsgId(), sent.getOffsetMsgId(), "offset message id");
        equal(b.getMsgType(), MessageType.Normal_Msg, "type");
        if (OnlyHere.CLIENT5) {
            return; // the consumer of 5.5.0 traces none of these deliveries, whatever the server
        }
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(s.group("c"), null, new AllocateMessageQueueAveragely(), true, null);
        s.configure(c, "-traced");
        c.setPollNameServerInterval(2000);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(topic, "*");
        Received got = new Received();
        c.registerMessageListener((List<MessageExt> l, ConsumeConcurrentlyContext x) -> {
            x.setDelayLevelWhenNextConsume(1);
            got.add(l);
            return l.get(0).getReconsumeTimes() == 0 ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        s.start(c);
        got.await(2, 60);
        List<TraceContext> all = await(s, TOPIC, sent.getMsgId(), 5);
        List<TraceContext> before = of(all, TraceType.SubBefore);
        List<TraceContext> after = of(all, TraceType.SubAfter);
        equal(before.size(), 2, "deliveries begun");
        equal(after.size(), 2, "deliveries ended");
        for (int i = 0; i < 2; i++) {
            equal(before.get(i).getGroupName(), s.group("c"), "consumer group");
            equal(bean(before.get(i)).getRetryTimes(), i, "retries");
            String request = before.get(i).getRequestId();
            List<TraceContext> end = after.stream().filter(x -> x.getRequestId().equals(request)).collect(Collectors.toList());
            equal(end.size(), 1, "ends of delivery " + i);
            equal(end.get(0).isSuccess(), i == 1, "success of delivery " + i);
        }
        // By a business key all of it is found too.
        that(!s.servers.admin.queryMessage(TOPIC, "key-2", 64, 0, System.currentTimeMillis() + 3_600_000).getMessageList().isEmpty(), "traces by key");
    }

    /** The half message and its end. */
    private static void transaction(Session s) throws Exception {
        String topic = s.createTopic(1);
        TransactionMQProducer p = new TransactionMQProducer(null, s.group("p"), null, true, null);
        p.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message m, Object state) {
                return (LocalTransactionState) state;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt m) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        started(s, p);
        SendResult committed = p.sendMessageInTransaction(new Message(topic, bytes("committed")), LocalTransactionState.COMMIT_MESSAGE);
        SendResult checked = p.sendMessageInTransaction(new Message(topic, bytes("checked")), LocalTransactionState.UNKNOW);
        ends(await(s, TOPIC, committed.getMsgId(), 2), LocalTransactionState.COMMIT_MESSAGE);
        // Its end is told twice: unknown when it was sent, commit when the broker asked.
        ends(await(s, TOPIC, checked.getMsgId(), 3), LocalTransactionState.UNKNOW, LocalTransactionState.COMMIT_MESSAGE);
        // So mqadmin queryMsgTraceById reads them; it prints the send and no end.
        List<String> views = new ArrayList<>();
        for (MessageExt m : s.servers.admin.queryMessage(TOPIC, checked.getMsgId(), 64, 0, System.currentTimeMillis() + 3_600_000).getMessageList()) {
            TraceView.decodeFromTraceTransData(checked.getMsgId(), m).forEach(v -> views.add(v.getMsgType() + " " + v.getGroupName() + " " + v.getStatus()));
        }
        views.sort(null);
        String by = " " + s.group("p") + " success";
        equal(views, List.of("EndTransaction" + by, "EndTransaction" + by, "Pub" + by), "what mqadmin reads");
    }

    private static void ends(List<TraceContext> all, LocalTransactionState... states) {
        List<TraceContext> half = of(all, TraceType.Pub);
        equal(half.size(), 1, "sends");
        equal(bean(half.get(0)).getMsgType(), MessageType.Trans_Msg_Half, "type of the send");
        List<TraceContext> end = of(all, TraceType.EndTransaction);
        equal(end.size(), states.length, "ends");
        for (int i = 0; i < states.length; i++) {
            equal(bean(end.get(i)).getTransactionState(), states[i], "state of end " + i);
            equal(bean(end.get(i)).getMsgType(), MessageType.Trans_msg_Commit, "type of end " + i);
        }
    }

    /** A topic of the client's own choice. */
    private static void ownTopic(Session s) throws Exception {
        String topic = s.createTopic(1);
        String own = s.createTopic("-traces", 1, 1, 6, Servers.A);
        SendResult sent = producer(s, own).send(new Message(topic, bytes("traced elsewhere")));
        equal(await(s, own, sent.getMsgId(), 1).get(0).getTraceType(), TraceType.Pub, "kind of trace");
        equal(traces(s, TOPIC, sent.getMsgId()).size(), 0, "traces in the usual topic");
    }

    /** A broker that wants no traces gets none, and only brokers that are told to make the topic. */
    private static void off(Session s) throws Exception {
        String topic = s.createTopic("", 1, 1, 6, Servers.B);
        String other = s.createTopic("-other", 1, 1, 6, Servers.A);
        DefaultMQProducer p = producer(s, null);
        SendResult silent = p.send(new Message(topic, bytes("not traced")));
        that(!silent.isTraceOn(), "an answer that asks for no traces");
        SendResult traced = p.send(new Message(other, bytes("traced")));
        await(s, TOPIC, traced.getMsgId(), 1); // the earlier one would be there by now
        equal(traces(s, TOPIC, silent.getMsgId()).size(), 0, "traces of a broker without");
        List<String> at = s.servers.admin.examineTopicRouteInfo(TOPIC).getQueueDatas().stream().map(q -> q.getBrokerName()).collect(Collectors.toList());
        equal(at, List.of("broker-a"), "brokers with the trace topic");
    }
}
