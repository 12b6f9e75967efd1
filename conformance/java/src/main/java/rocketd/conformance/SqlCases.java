package rocketd.conformance;

import static rocketd.conformance.Check.bytes;
import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.refused;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Consumers that choose messages by SQL92, on broker A, which has enablePropertyFilter=true. */
final class SqlCases {
    private static final int SUBSCRIPTION_PARSE_FAILED = 23;

    private SqlCases() {
    }

    static void register() {
        Main.add("sql-push", SqlCases::push);
        Main.add("sql-change", SqlCases::change);
        Main.add("sql-retry", SqlCases::retry);
        Main.add("sql-pull", SqlCases::pull);
        Main.add("lite-pull-sql", SqlCases::litePull);
        Main.add("sql-wrong", SqlCases::wrong);
    }

    /** Sends messages with the properties n = 0, 1, … and even, which only every second has. */
    private static void send(DefaultMQProducer p, String topic, int from, int to) throws Exception {
        for (int n = from; n < to; n++) {
            Message m = new Message(topic, "Tag" + n % 3, "key-" + n, bytes("body " + n));
            m.putUserProperty("n", String.valueOf(n));
            if (n % 2 == 0) {
                m.putUserProperty("even", "yes");
            }
            p.send(m);
        }
    }

    private static List<Integer> numbers(List<MessageExt> got) {
        return got.stream().map(m -> Integer.valueOf(m.getUserProperty("n"))).sorted().collect(Collectors.toList());
    }

    static void push(Session s) throws Exception {
        String topic = s.createTopic(4);
        var c = s.consumer("c", "");
        Received got = new Received();
        c.subscribe(topic, MessageSelector.bySql("n BETWEEN 10 AND 19 AND even IS NOT NULL OR TAGS = 'Tag1' AND n > 36.5"));
        c.registerMessageListener(got.succeeding());
        send(s.producer(), topic, 0, 20);
        s.start(c);
        got.await(5, 40);
        send(s.producer("q", p -> { }), topic, 20, 41);
        got.await(7, 40);
        got.nothingMore(300);
        equal(numbers(got.all()), List.of(10, 12, 14, 16, 18, 37, 40), "taken");
    }

    /** A running consumer subscribes anew: from then on the new expression holds. */
    static void change(Session s) throws Exception {
        String topic = s.createTopic(1);
        var c = s.consumer("c", "");
        Received got = new Received();
        c.subscribe(topic, MessageSelector.bySql("n < 2"));
        c.registerMessageListener(got.succeeding());
        s.start(c);
        DefaultMQProducer p = s.producer();
        send(p, topic, 0, 4);
        got.await(2, 40);
        MessageQueue q = s.queues(topic, Servers.A).get(0);
        eventually(30, "all of the queue passed", () -> s.committed("c", q) == 4);
        c.subscribe(topic, MessageSelector.bySql("n >= 6"));
        send(p, topic, 4, 8);
        got.await(4, 40);
        equal(numbers(got.all()), List.of(0, 1, 6, 7), "taken");
    }

    static void retry(Session s) throws Exception {
        String topic = s.createTopic(1);
        s.knownGroup("c", topic);
        var c = s.consumer("c", "");
        Received got = new Received();
        c.subscribe(topic, MessageSelector.bySql("n = 3"));
        MessageListenerConcurrently later = (l, context) -> {
            got.add(l);
            context.setDelayLevelWhenNextConsume(1);
            return l.get(0).getReconsumeTimes() == 0 ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
        c.registerMessageListener(later);
        send(s.producer(), topic, 0, 5);
        s.start(c);
        got.await(2, 60);
        equal(numbers(got.all()), List.of(3, 3), "taken");
        equal(got.all().get(1).getReconsumeTimes(), 1, "times given back");
    }

    static void pull(Session s) throws Exception {
        String topic = s.createTopic(1);
        send(s.producer(), topic, 0, 10);
        MessageQueue q = s.queues(topic, Servers.A).get(0);
        s.readQueue(q, 10);
        DefaultMQPullConsumer c = s.puller("c");
        eventually(30, "the broker's version, which the first heartbeat brings", () -> {
            try {
                c.pull(q, MessageSelector.bySql("n > 100"), 0, 1);
                return true;
            } catch (MQClientException e) {
                return !e.getMessage().contains("does not upgrade to support for filter message by SQL92");
            }
        });
        PullResult all = c.pull(q, MessageSelector.bySql("n IN ('2', '5') OR n > 8"), 0, 32);
        equal(numbers(all.getMsgFoundList()), List.of(2, 5, 9), "taken");
        equal(all.getNextBeginOffset(), 10L, "next offset");
        PullResult none = c.pull(q, MessageSelector.bySql("n > 100"), 3, 32);
        equal(none.getPullStatus(), PullStatus.NO_MATCHED_MSG, "of none");
        equal(none.getNextBeginOffset(), 10L, "next offset of none");
        PullResult first = c.pull(q, MessageSelector.bySql("even = 'yes'"), 1, 2);
        equal(numbers(first.getMsgFoundList()), List.of(2, 4), "the first two");
        equal(first.getNextBeginOffset(), 5L, "next offset of the first two");
    }

    static void litePull(Session s) throws Exception {
        String topic = s.createTopic(2);
        send(s.producer(), topic, 0, 20);
        DefaultLitePullConsumer c = new DefaultLitePullConsumer(s.group("c"));
        s.configure(c, "");
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(topic, MessageSelector.bySql("NOT (n < 15) AND even IS NULL"));
        c.start();
        s.atEnd(c::shutdown);
        List<MessageExt> got = Collections.synchronizedList(new ArrayList<>());
        eventually(40, "three messages", () -> {
            got.addAll(c.poll(200));
            return got.size() >= 3;
        });
        equal(numbers(got), List.of(15, 17, 19), "taken");
    }

    /** The client learns at its start what is wrong with an expression, and where. */
    static void wrong(Session s) throws Exception {
        String topic = s.createTopic(1);
        int n = 0;
        for (String[] wrong : new String[][] {
            {"a/b > 1", "TokenMgrError: Lexical error at line 1, column 3.  Encountered: \"b\" (98), after : \"/\""},
            {"a = 1 AND", "ParseException: Encountered \"<EOF>\" at line 1, column 9."},
            {"a > 'x'", "java.lang.RuntimeException: Value ''x'' cannot be compared."},
            {"a BETWEEN 10 AND 1", "left value(10) must less than or equal to right value(1)"},
        }) {
            var c = s.consumer("c" + n, "-" + n);
            n++;
            c.subscribe(topic, MessageSelector.bySql(wrong[0]));
            c.registerMessageListener(new Received().succeeding());
            refused(SUBSCRIPTION_PARSE_FAILED, wrong[1], () -> s.start(c));
        }
    }
}
