package rocketd.conformance;

import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.text;
import static rocketd.conformance.Check.that;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Transactions. The brokers check half messages every second from the age of 1.5 s on, three times at most.
 */
final class TransactionCases {
    private static final String GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC";
    private static final LocalTransactionState COMMIT = LocalTransactionState.COMMIT_MESSAGE;
    private static final LocalTransactionState ROLLBACK = LocalTransactionState.ROLLBACK_MESSAGE;
    private static final LocalTransactionState UNKNOWN = LocalTransactionState.UNKNOW;

    private TransactionCases() {
    }

    static void register() {
        Main.add("transaction-ended", TransactionCases::ended);
        Main.add("transaction-checked", TransactionCases::checked);
        Main.add("transaction-another-instance", TransactionCases::anotherInstance);
        Main.add("transaction-given-up", TransactionCases::givenUp);
        Main.add("transaction-resumed", TransactionCases::resumed);
        Main.add("transaction-immune", TransactionCases::immune);
        Main.add("restart-transaction", TransactionCases::restart);
    }

    /** Says what a case wants said, and remembers what was asked. */
    private static final class Listener implements TransactionListener {
        final Map<String, LocalTransactionState> answers = new ConcurrentHashMap<>(); // to checks, by body
        final List<MessageExt> checks = new CopyOnWriteArrayList<>();

        @Override
        public LocalTransactionState executeLocalTransaction(Message m, Object state) {
            return (LocalTransactionState) state;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt m) {
            checks.add(m);
            return answers.getOrDefault(text(m.getBody()), UNKNOWN);
        }

        long checksOf(String body) {
            return checks.stream().filter(m -> text(m.getBody()).equals(body)).count();
        }
    }

    private static TransactionMQProducer producer(Session s, String instance, TransactionListener l) throws Exception {
        TransactionMQProducer p = new TransactionMQProducer(s.group("t"));
        s.configure(p, instance);
        p.setSendMsgTimeout(10000);
        p.setTransactionListener(l);
        p.start();
        s.atEnd(p::shutdown);
        return p;
    }

    private static Received consume(Session s, String topic) throws Exception {
        Received got = new Received();
        DefaultMQPushConsumer c = s.consumer("c", "-c");
        c.subscribe(topic, "TagA");
        c.registerMessageListener(got.succeeding());
        s.start(c);
        return got;
    }

    private static TransactionSendResult send(TransactionMQProducer p, String topic, int n, LocalTransactionState state) throws Exception {
        TransactionSendResult r = p.sendMessageInTransaction(Session.message(topic, "TagA", n), state);
        equal(r.getSendStatus(), SendStatus.SEND_OK, "status");
        equal(r.getLocalTransactionState(), state, "state");
        return r;
    }

    private static Set<String> bodies(Received got) {
        Set<String> all = new HashSet<>();
        got.all().forEach(m -> all.add(text(m.getBody())));
        return all;
    }

    static void ended(Session s) throws Exception {
        String topic = s.createTopic(4);
        Received got = consume(s, topic);
        TransactionMQProducer p = producer(s, "-t", new Listener());
        Map<String, TransactionSendResult> sent = new ConcurrentHashMap<>();
        for (int i = 0; i < 20; i++) {
            sent.put("body " + i, send(p, topic, i, i % 2 == 0 ? COMMIT : ROLLBACK));
        }
        got.await(10, 30);
        for (MessageExt m : got.all()) {
            TransactionSendResult r = sent.get(text(m.getBody()));
            equal(r.getLocalTransactionState(), COMMIT, "state of %s", text(m.getBody()));
            equal(m.getMsgId(), r.getMsgId(), "unique key");
            equal(m.getQueueId(), r.getMessageQueue().getQueueId(), "queue");
            equal(m.getKeys(), "key-" + text(m.getBody()).substring(5), "keys");
            equal(m.getSysFlag() & 0xC, 0x8, "transaction bits");
            equal(m.getProperty("PGROUP"), s.group("t"), "producer group");
            that(m.getPreparedTransactionOffset() > 0 || r.getQueueOffset() == 0, "the half message's place");
        }
        // A body that the client compresses, and properties of its own.
        byte[] large = new byte[20000];
        Arrays.fill(large, (byte) 'x');
        Message big = new Message(topic, "TagA", large);
        big.putUserProperty("colour", "blau 蓝");
        p.sendMessageInTransaction(big, COMMIT);
        got.await(11, 30);
        MessageExt m = got.all().get(10);
        that(Arrays.equals(m.getBody(), large), "the body that was sent");
        equal(m.getUserProperty("colour"), "blau 蓝", "user property");
        got.nothingMore(1000);
    }

    static void checked(Session s) throws Exception {
        String topic = s.createTopic(2);
        Received got = consume(s, topic);
        Listener l = new Listener();
        TransactionMQProducer p = producer(s, "-t", l);
        for (int i = 0; i < 6; i++) {
            l.answers.put("body " + i, i % 2 == 0 ? COMMIT : ROLLBACK);
            send(p, topic, i, UNKNOWN);
        }
        eventually(60, "three are committed", () -> bodies(got).equals(Set.of("body 0", "body 2", "body 4")));
        eventually(30, "a check of each", () -> {
            Set<String> asked = new HashSet<>();
            l.checks.forEach(m -> asked.add(text(m.getBody())));
            return asked.size() == 6;
        });
        for (MessageExt m : l.checks) {
            equal(m.getTopic(), topic, "topic");
            equal(m.getTags(), "TagA", "tag");
            equal(m.getTransactionId(), m.getProperty("UNIQ_KEY"), "transaction id");
            that(m.getProperty("TRANSACTION_CHECK_TIMES").matches("[123]"), "the number of the check"); // 1, unless the machine is very busy
            equal(m.getProperty("REAL_QID"), String.valueOf(m.getQueueId()), "queue");
        }
        Thread.sleep(1500); // a round: what was rolled back stays so
        equal(bodies(got), Set.of("body 0", "body 2", "body 4"), "committed");
    }

    /** The producer goes; another one of its group is asked, and each of two in turn. */
    static void anotherInstance(Session s) throws Exception {
        String topic = s.createTopic(2);
        Received got = consume(s, topic);
        Listener second = new Listener();
        Listener third = new Listener();
        for (int i = 0; i < 8; i++) {
            second.answers.put("body " + i, COMMIT);
            third.answers.put("body " + i, COMMIT);
        }
        for (Listener l : List.of(second, third)) {
            TransactionMQProducer p = producer(s, l == second ? "-second" : "-third", l);
            send(p, topic, l == second ? 100 : 101, ROLLBACK); // now it knows the broker, which is told its group
            p.getDefaultMQProducerImpl().getMqClientFactory().sendHeartbeatToAllBrokerWithLock();
        }
        TransactionMQProducer first = producer(s, "-first", new Listener());
        for (int i = 0; i < 8; i++) {
            send(first, topic, i, UNKNOWN);
        }
        first.shutdown();
        eventually(60, "all are committed", () -> bodies(got).size() == 8);
        that(second.checks.size() + third.checks.size() >= 8, "checks by those that are left");
    }

    static void givenUp(Session s) throws Exception {
        String topic = s.createTopic(1);
        Received got = consume(s, topic);
        Listener l = new Listener();
        TransactionMQProducer p = producer(s, "-t", l);
        String id = send(p, topic, 7, UNKNOWN).getMsgId();
        MessageExt given = awaitGivenUp(s, id);
        eventually(20, "three checks", () -> l.checksOf("body 7") == 3);
        equal(given.getProperty("TRANSACTION_CHECK_TIMES"), "3", "checks of the one that was given up");
        equal(given.getProperty("REAL_TOPIC"), topic, "its topic");
        Thread.sleep(1500);
        equal(l.checksOf("body 7"), 3L, "checks after that");
        equal(got.size(), 0, "messages");
    }

    /** The half message as it lies among those that nobody has ended. */
    private static MessageExt awaitGivenUp(Session s, String msgId) throws Exception {
        List<MessageExt> given = new ArrayList<>();
        eventually(60, "the half message is given up", () -> {
            try {
                given.clear();
                given.addAll(s.readNow(GIVEN_UP));
            } catch (org.apache.rocketmq.client.exception.MQClientException e) {
                return false; // the topic is made with the first message
            }
            given.removeIf(m -> !msgId.equals(m.getMsgId()));
            return !given.isEmpty();
        });
        return given.get(0);
    }

    /** An administrator has a half message that was given up checked again; now its producer knows what to say. */
    static void resumed(Session s) throws Exception {
        String topic = s.createTopic(1);
        Received got = consume(s, topic);
        Listener l = new Listener();
        TransactionMQProducer p = producer(s, "-t", l);
        MessageExt given = awaitGivenUp(s, send(p, topic, 7, UNKNOWN).getMsgId());
        eventually(20, "three checks", () -> l.checksOf("body 7") == 3);
        l.answers.put("body 7", COMMIT);
        that(s.servers.admin.resumeCheckHalfMessage(GIVEN_UP, ((MessageClientExt) given).getOffsetMsgId()), "the broker takes it back");
        got.await(1, 60);
        equal(text(got.all().get(0).getBody()), "body 7", "body");
        equal(got.all().get(0).getMsgId(), given.getMsgId(), "unique key");
        equal(l.checks.get(3).getProperty("TRANSACTION_CHECK_TIMES"), "1", "the number of the next check");
    }

    /** A producer that wants more time gets it, and can end the transaction meanwhile. */
    static void immune(Session s) throws Exception {
        String topic = s.createTopic(1);
        Received got = consume(s, topic);
        Listener l = new Listener();
        AtomicBoolean slow = new AtomicBoolean();
        TransactionMQProducer p = producer(s, "-t", new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message m, Object state) {
                try {
                    Thread.sleep(4000); // more than two rounds
                } catch (InterruptedException e) {
                    return UNKNOWN;
                }
                slow.set(true);
                return COMMIT;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt m) {
                return l.checkLocalTransaction(m);
            }
        });
        Message m = Session.message(topic, "TagA", 1);
        m.putUserProperty("CHECK_IMMUNITY_TIME_IN_SECONDS", "60");
        p.sendMessageInTransaction(m, null);
        got.await(1, 30);
        that(slow.get(), "not before it was committed");
        equal(l.checks.size(), 0, "checks");
    }

    /** The broker is killed between half message and end, and while half messages are open. */
    static void restart(Session s) throws Exception {
        String topic = s.createTopic("", 2, 2, 6, Servers.D);
        Received got = consume(s, topic);
        Listener l = new Listener();
        l.answers.put("body 0", COMMIT);
        l.answers.put("body 1", COMMIT);
        l.answers.put("body 2", ROLLBACK);
        l.answers.put("body 3", COMMIT);
        TransactionMQProducer p = producer(s, "-t", new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message m, Object state) {
                if (state == COMMIT) {
                    try {
                        s.servers.ask("kill", Servers.D);
                        s.servers.ask("start", Servers.D);
                    } catch (java.io.IOException e) {
                        throw new IllegalStateException(e);
                    }
                }
                return (LocalTransactionState) state;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt m) {
                return l.checkLocalTransaction(m);
            }
        });
        send(p, topic, 1, UNKNOWN);
        send(p, topic, 2, UNKNOWN);
        send(p, topic, 0, COMMIT); // its end may be lost with the connection
        eventually(80, "both are committed", () -> bodies(got).equals(Set.of("body 0", "body 1")));
        s.servers.ask("stop", Servers.D);
        s.servers.ask("start", Servers.D);
        eventually(60, "one more is sent", () -> {
            try {
                send(p, topic, 3, UNKNOWN);
                return true;
            } catch (org.apache.rocketmq.client.exception.MQClientException e) {
                return false;
            }
        });
        eventually(80, "it is committed", () -> bodies(got).equals(Set.of("body 0", "body 1", "body 3")));
    }
}
