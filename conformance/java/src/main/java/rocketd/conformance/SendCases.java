package rocketd.conformance;

import static rocketd.conformance.Check.bytes;
import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.text;
import static rocketd.conformance.Check.that;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.hook.SendMessageContext;
import org.apache.rocketmq.client.hook.SendMessageHook;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByRandom;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;

/** All ways of sending; what was sent is read back and compared. */
final class SendCases {
    private SendCases() {
    }

    static void register() {
        Main.add("send-sync", SendCases::sync);
        Main.add("send-async", SendCases::async);
        Main.add("send-oneway", SendCases::oneway);
        Main.add("send-batch", SendCases::batch);
        Main.add("send-big-and-compressed", SendCases::big);
        Main.add("send-selector", SendCases::selector);
        Main.add("send-delay", SendCases::delay);
        Main.add("send-vip-channel", SendCases::vip);
        Main.add("send-namespace", SendCases::namespace);
        Main.add("send-auto-create", SendCases::autoCreate);
        Main.add("send-big-properties", SendCases::properties);
    }

    static void sync(Session s) throws Exception {
        String topic = s.createTopic(4);
        DefaultMQProducer p = s.producer();
        long before = System.currentTimeMillis();
        Map<String, Message> sent = new HashMap<>();
        Map<String, SendResult> results = new HashMap<>();
        long[] next = new long[4];
        for (int i = 0; i < 40; i++) {
            Message m = new Message(topic, "Tag" + i % 3, "key-" + i + " shared", 1000 + i, bytes("body " + i + " \u6f22\u5b57"), true);
            m.putUserProperty("n", "" + i);
            m.putUserProperty("unicode", "gr\u00fc\u00df \u6f22\u5b57 \ud83d\ude80 " + i);
            m.setBuyerId("buyer-" + i);
            SendResult r = p.send(m);
            equal(r.getSendStatus(), SendStatus.SEND_OK, "status");
            equal(r.getMessageQueue().getTopic(), topic, "topic");
            equal(r.getMessageQueue().getBrokerName(), Servers.A, "broker");
            int q = r.getMessageQueue().getQueueId();
            equal(r.getQueueOffset(), next[q]++, "queueOffset in queue %d", q);
            equal(r.getRegionId(), "RegionA", "region");
            sent.put(r.getMsgId(), m);
            results.put(r.getMsgId(), r);
        }
        equal(sent.size(), 40, "different msgIds");
        equal(Arrays.toString(next), "[10, 10, 10, 10]", "round-robin");
        List<MessageExt> got = s.readAll(topic, 40);
        long after = System.currentTimeMillis();
        long lastPhyOffset = -1;
        got.sort((a, b) -> Long.compare(a.getCommitLogOffset(), b.getCommitLogOffset()));
        for (MessageExt g : got) {
            Message m = sent.remove(g.getMsgId());
            that(m != null, "a sent msgId, got %s", g.getMsgId());
            SendResult r = results.get(g.getMsgId());
            equal(text(g.getBody()), text(m.getBody()), "body");
            equal(g.getTopic(), topic, "topic");
            equal(g.getTags(), m.getTags(), "tags");
            equal(g.getKeys(), m.getKeys(), "keys");
            equal(g.getFlag(), m.getFlag(), "flag");
            equal(g.getBuyerId(), m.getBuyerId(), "buyer id");
            equal(g.getUserProperty("n"), m.getUserProperty("n"), "property n");
            equal(g.getUserProperty("unicode"), m.getUserProperty("unicode"), "property unicode");
            that(g.isWaitStoreMsgOK(), "WAIT=true");
            equal(g.getProperty("CLUSTER"), "DefaultCluster", "property CLUSTER, which the broker adds");
            equal(g.getQueueId(), r.getMessageQueue().getQueueId(), "queueId");
            equal(g.getQueueOffset(), r.getQueueOffset(), "queueOffset");
            equal(g.getBrokerName(), Servers.A, "brokerName");
            equal(g.getReconsumeTimes(), 0, "reconsumeTimes");
            equal(g.getPreparedTransactionOffset(), 0L, "preparedTransactionOffset");
            equal(g.getSysFlag() & MessageSysFlag.COMPRESSED_FLAG, 0, "compressed flag");
            equal(hostPort(g.getStoreHost()), s.servers.addr(Servers.A), "storeHost");
            that(hostPort(g.getBornHost()).startsWith("127.0.0.1:"), "bornHost on loopback, got %s", g.getBornHost());
            that(before <= g.getBornTimestamp() && g.getBornTimestamp() <= g.getStoreTimestamp() && g.getStoreTimestamp() <= after,
                "%d <= born %d <= stored %d <= %d", before, g.getBornTimestamp(), g.getStoreTimestamp(), after);
            that(g.getCommitLogOffset() > lastPhyOffset, "rising physical offsets");
            lastPhyOffset = g.getCommitLogOffset();
            var id = MessageDecoder.decodeMessageId(r.getOffsetMsgId());
            equal(id.getOffset(), g.getCommitLogOffset(), "physical offset in the offset id");
            equal(hostPort(id.getAddress()), s.servers.addr(Servers.A), "address in the offset id");
        }
    }

    static String hostPort(java.net.SocketAddress a) {
        var i = (java.net.InetSocketAddress) a;
        return i.getAddress().getHostAddress() + ":" + i.getPort();
    }

    static void async(Session s) throws Exception {
        String topic = s.createTopic(4);
        DefaultMQProducer p = s.producer();
        int n = 100;
        CountDownLatch answered = new CountDownLatch(n);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Set<String> places = ConcurrentHashMap.newKeySet();
        for (int i = 0; i < n; i++) {
            p.send(Session.message(topic, "TagA", i), new SendCallback() {
                @Override public void onSuccess(SendResult r) {
                    if (r.getSendStatus() == SendStatus.SEND_OK) {
                        places.add(r.getMessageQueue().getQueueId() + "/" + r.getQueueOffset());
                    }
                    answered.countDown();
                }

                @Override public void onException(Throwable e) {
                    failure.set(e);
                    answered.countDown();
                }
            });
        }
        that(answered.await(30, TimeUnit.SECONDS), "%d answers, %d are missing", n, answered.getCount());
        equal(failure.get(), null, "failure");
        equal(places.size(), n, "different queue offsets");
        equal(bodies(s.readAll(topic, n)), expectedBodies(0, n), "bodies");
    }

    static void oneway(Session s) throws Exception {
        String topic = s.createTopic(2);
        DefaultMQProducer p = s.producer();
        for (int i = 0; i < 50; i++) {
            p.sendOneway(Session.message(topic, "TagA", i));
        }
        MessageQueue fixed = s.queues(topic, Servers.A).get(1);
        p.sendOneway(Session.message(topic, "TagA", 50), fixed);
        p.sendOneway(Session.message(topic, "TagA", 51), (qs, m, arg) -> fixed, null);
        equal(bodies(s.readUntil(topic, 52, 15)), expectedBodies(0, 52), "bodies");
    }

    static void batch(Session s) throws Exception {
        String topic = s.createTopic(4);
        DefaultMQProducer p = s.producer();
        MessageQueue q = s.queues(topic, Servers.A).get(2);
        p.send(Session.message(topic, "Lone", 1000), q);
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 32; i++) {
            Message m = Session.message(topic, "Tag" + i % 4, i);
            m.putUserProperty("n", "" + i);
            m.setFlag(i);
            batch.add(m);
        }
        SendResult r = p.send(batch, q);
        equal(r.getSendStatus(), SendStatus.SEND_OK, "status");
        equal(r.getQueueOffset(), 1L, "first offset of the batch");
        equal(r.getMsgId().split(",").length, 32, "msgIds");
        equal(r.getOffsetMsgId().split(",").length, 32, "offset ids");
        equal(p.send(batch.subList(0, 1), q).getQueueOffset(), 33L, "offset of a batch of one");
        List<MessageExt> got = s.readQueue(q, 34);
        String[] ids = r.getOffsetMsgId().split(",");
        String[] keys = r.getMsgId().split(",");
        for (int i = 0; i < 32; i++) {
            MessageExt g = got.get(i + 1);
            equal(text(g.getBody()), "body " + i, "body");
            equal(g.getQueueOffset(), i + 1L, "queueOffset");
            equal(g.getTags(), "Tag" + i % 4, "tags");
            equal(g.getKeys(), "key-" + i, "keys");
            equal(g.getUserProperty("n"), "" + i, "property");
            equal(g.getFlag(), i, "flag");
            // A 4.9 broker appends the batch's own properties to those of each message; the 5.x client gives the
            // batch a UNIQ_KEY, too, and so they all end up with that one.
            equal(g.getMsgId(), OnlyHere.CLIENT5 ? got.get(1).getMsgId() : keys[i], "msgId");
            equal(MessageDecoder.decodeMessageId(ids[i]).getOffset(), g.getCommitLogOffset(), "physical offset");
        }
        CountDownLatch l = new CountDownLatch(1);
        AtomicReference<Object> result = new AtomicReference<>();
        p.send(batch, new SendCallback() {
            @Override public void onSuccess(SendResult r) {
                result.set(r.getSendStatus());
                l.countDown();
            }

            @Override public void onException(Throwable e) {
                result.set(e);
                l.countDown();
            }
        });
        that(l.await(20, TimeUnit.SECONDS), "an answer to an asynchronous batch");
        equal(result.get(), SendStatus.SEND_OK, "asynchronous batch");
        s.readAll(topic, 66);
    }

    static byte[] lines(int size) {
        StringBuilder b = new StringBuilder();
        Random r = new Random(7);
        while (b.length() < size) {
            b.append("line ").append(r.nextInt(1000)).append('\n');
        }
        return bytes(b.substring(0, size));
    }

    static byte[] noise(int size) {
        byte[] b = new byte[size];
        new Random(size).nextBytes(b);
        return b;
    }

    static void big(Session s) throws Exception {
        String topic = s.createTopic(1);
        DefaultMQProducer p = s.producer();
        // The client compresses bodies above 4096 bytes; 4 MiB is the limit of both sides.
        byte[][] bodies = {lines(20000), lines(4097), lines(4095), noise(70000), lines(4 << 20), noise((4 << 20) - 4096)};
        boolean[] compressed = {true, true, false, true, true, true};
        for (int i = 0; i < bodies.length; i++) {
            Message m = new Message(topic, "TagA", "big-" + i, bodies[i]);
            equal(p.send(m).getSendStatus(), SendStatus.SEND_OK, "status of body %d", i);
        }
        List<MessageExt> got = s.readAll(topic, bodies.length);
        for (int i = 0; i < bodies.length; i++) {
            MessageExt g = got.get(i);
            // The 5.x client takes the flag away when it has decompressed the body.
            equal((g.getSysFlag() & MessageSysFlag.COMPRESSED_FLAG) != 0, compressed[i] && !OnlyHere.CLIENT5, "compressed flag of body %d", i);
            that(Arrays.equals(g.getBody(), bodies[i]), "body %d of %d bytes unchanged, got %d bytes", i, bodies[i].length, g.getBody().length);
        }
        that(got.get(0).getStoreSize() < 20000, "a compressed record, got %d bytes", got.get(0).getStoreSize());
    }

    static void selector(Session s) throws Exception {
        String topic = s.createTopic(8);
        DefaultMQProducer p = s.producer();
        for (int i = 0; i < 24; i++) {
            int want = i % 3;
            SendResult r = p.send(Session.message(topic, "own", i), (qs, m, arg) -> {
                equal(qs.size(), 8, "queues offered to the selector");
                return qs.get((Integer) arg);
            }, want);
            equal(r.getMessageQueue().getQueueId(), want, "queue of own selector");
        }
        Map<String, Integer> byKey = new HashMap<>();
        for (int i = 0; i < 24; i++) {
            String key = "order-" + i % 5;
            int q = p.send(Session.message(topic, "hash", i), new SelectMessageQueueByHash(), key).getMessageQueue().getQueueId();
            equal(q, byKey.computeIfAbsent(key, k -> q), "queue of %s", key);
        }
        Set<Integer> random = new HashSet<>();
        SelectMessageQueueByRandom byChance = new SelectMessageQueueByRandom();
        for (int i = 0; i < 60; i++) {
            random.add(p.send(Session.message(topic, "random", i), byChance, null).getMessageQueue().getQueueId());
        }
        that(random.size() > 2, "random queues, got %s", random);
        List<MessageExt> got = s.readAll(topic, 108);
        for (MessageExt g : got) {
            if ("own".equals(g.getTags())) {
                int n = Integer.parseInt(g.getKeys().substring("key-".length()));
                equal(g.getQueueId(), n % 3, "queue of %s", g.getKeys());
            }
        }
    }

    static void delay(Session s) throws Exception {
        String topic = s.createTopic(4);
        DefaultMQProducer p = s.producer();
        // Levels 1 and 2 are 1 s and 5 s.
        for (int level : new int[] {2, 1}) {
            for (int i = 0; i < 5; i++) {
                Message m = Session.message(topic, "level" + level, i);
                m.setDelayTimeLevel(level);
                equal(p.send(m).getSendStatus(), SendStatus.SEND_OK, "status");
            }
        }
        List<MessageExt> got = s.readUntil(topic, 10, 20);
        for (MessageExt g : got) {
            long least = "level1".equals(g.getTags()) ? 1000 : 5000;
            long late = g.getStoreTimestamp() - g.getBornTimestamp() - least;
            // The official server comes up to 0.2 s late when idle, more on a busy machine.
            that(late > -100 && late < 3000, "%s delivered when due, got %d ms late", g.getTags(), late);
            equal(g.getTopic(), topic, "topic");
            equal(g.getProperty("DELAY"), g.getTags().substring("level".length()), "property DELAY, which stays after delivery");
            equal(text(g.getBody()), "body " + g.getKeys().substring("key-".length()), "body");
        }
    }

    /** Notes the address of every attempt to send, successful or not. */
    static final class Attempts implements SendMessageHook {
        final List<String> brokers = new ArrayList<>();

        @Override public String hookName() {
            return "attempts";
        }

        @Override public synchronized void sendMessageBefore(SendMessageContext c) {
            brokers.add(c.getBrokerAddr());
        }

        @Override public void sendMessageAfter(SendMessageContext c) {
        }

        synchronized List<String> taken() {
            List<String> l = new ArrayList<>(brokers);
            brokers.clear();
            return l;
        }
    }

    static void vip(Session s) throws Exception {
        String topic = s.createTopic(4);
        Attempts attempts = new Attempts();
        DefaultMQProducer p = s.producer("p", x -> x.setVipChannelEnabled(true));
        p.getDefaultMQProducerImpl().registerSendMessageHook(attempts);
        String[] addr = s.servers.addr(Servers.A).split(":");
        String fast = addr[0] + ":" + (Integer.parseInt(addr[1]) - 2);
        for (int i = 0; i < 20; i++) {
            SendResult r = p.send(Session.message(topic, "TagA", i));
            equal(r.getSendStatus(), SendStatus.SEND_OK, "status");
            equal(hostPort(MessageDecoder.decodeMessageId(r.getOffsetMsgId()).getAddress()), s.servers.addr(Servers.A),
                "the offset id has the main port");
        }
        equal(new HashSet<>(attempts.taken()), Set.of(fast), "addresses sent to");
        equal(bodies(s.readAll(topic, 20)), expectedBodies(0, 20), "bodies");
        // Offsets and queries by way of the fast port, too.
        var c = s.puller("c", x -> x.setVipChannelEnabled(true));
        MessageQueue q = s.queues(topic, Servers.A).get(0);
        equal(c.maxOffset(q), 5L, "maxOffset");
        equal(c.pull(q, "*", 0, 32).getMsgFoundList().size(), 5, "pulled");
    }

    static void namespace(Session s) throws Exception {
        String plain = s.topic("");
        String stored = "NS1%" + plain;
        s.servers.admin.createAndUpdateTopicConfig(s.servers.addr(Servers.A), new org.apache.rocketmq.common.TopicConfig(stored, 2, 2, 6));
        s.awaitRoute(stored, Servers.A, 2, 6);
        DefaultMQProducer p = s.producer("p", x -> x.setNamespace("NS1"));
        for (int i = 0; i < 6; i++) {
            SendResult r = p.send(Session.message(plain, "TagA", i));
            equal(r.getMessageQueue().getTopic(), plain, "topic shown to the sender");
        }
        equal(bodies(s.readAll(stored, 6)), expectedBodies(0, 6), "bodies under the stored name");
        var c = s.consumer("c", "-ns");
        c.setNamespace("NS1");
        Received got = new Received();
        c.subscribe(plain, "*");
        c.registerMessageListener(got.succeeding());
        s.start(c);
        got.await(6, 20);
        for (MessageExt m : got.all()) {
            equal(m.getTopic(), plain, "topic shown to the consumer");
        }
        equal(c.getConsumerGroup(), "NS1%" + s.group("c"), "group");
    }

    static void autoCreate(Session s) throws Exception {
        String topic = s.topic("");
        DefaultMQProducer p = s.producer("p", x -> x.setDefaultTopicQueueNums(3));
        SendResult first = p.send(Session.message(topic, "TagA", 0));
        equal(first.getSendStatus(), SendStatus.SEND_OK, "status");
        equal(first.getMessageQueue().getBrokerName(), Servers.A, "the only broker with autoCreateTopicEnable");
        s.awaitRoute(topic, Servers.A, 3, 6);
        equal(p.send(Session.message(topic, "TagA", 1)).getSendStatus(), SendStatus.SEND_OK, "status");
        equal(bodies(s.readAll(topic, 2)), expectedBodies(0, 2), "bodies");
        // The default topic offers 8 queues: more than that are not to be had.
        String wide = s.topic("-wide");
        s.producer("wide", x -> x.setDefaultTopicQueueNums(100)).send(Session.message(wide, "TagA", 0));
        s.awaitRoute(wide, Servers.A, 8, 6);
    }

    static void properties(Session s) throws Exception {
        String topic = s.createTopic(1);
        DefaultMQProducer p = s.producer();
        String big = new String(new char[30000]).replace('\0', 'x');
        Message m = Session.message(topic, "TagA", 0);
        m.putUserProperty("big", big);
        p.send(m);
        Message many = Session.message(topic, "TagA", 1);
        for (int i = 0; i < 500; i++) {
            many.putUserProperty("name-" + i, "value " + i);
        }
        p.send(many);
        List<MessageExt> got = s.readAll(topic, 2);
        equal(got.get(0).getUserProperty("big"), big, "a property of 30000 characters");
        for (int i = 0; i < 500; i++) {
            equal(got.get(1).getUserProperty("name-" + i), "value " + i, "property %d", i);
        }
    }

    static Set<String> bodies(List<MessageExt> l) {
        Set<String> b = new HashSet<>();
        for (MessageExt m : l) {
            that(b.add(text(m.getBody())), "%s once, got it twice", text(m.getBody()));
        }
        return b;
    }

    static Set<String> expectedBodies(int from, int to) {
        Set<String> b = new HashSet<>();
        for (int i = from; i < to; i++) {
            b.add("body " + i);
        }
        return b;
    }
}
