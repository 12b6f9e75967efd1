package rocketd.conformance;

import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.refused;
import static rocketd.conformance.Check.text;
import static rocketd.conformance.Check.that;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageClientIDSetter;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What an administrator asks of consumers and their groups, by way of the broker. */
final class AskCases {
    private AskCases() {
    }

    static void register() {
        Main.add("ask-reset-online", AskCases::resetOnline);
        Main.add("ask-skip-online", AskCases::skipOnline);
        Main.add("ask-consume-directly", AskCases::consumeDirectly);
        Main.add("ask-running-info", AskCases::runningInfo);
        Main.add("ask-reset-offline", AskCases::resetOffline);
        Main.add("ask-consume-status", AskCases::consumeStatus);
        Main.add("ask-clone-offset", AskCases::cloneOffset);
        Main.add("ask-time-span", AskCases::timeSpan);
        Main.add("ask-broker-stats", AskCases::brokerStats);
        Main.add("ask-topic-config", AskCases::topicConfig);
    }

    /** A push consumer that takes all, of an instance and so a client id of its own. */
    private static DefaultMQPushConsumer taking(Session s, String topic, String instance, Received got) throws Exception {
        DefaultMQPushConsumer c = s.consumer("c", instance);
        c.subscribe(topic, "*");
        c.registerMessageListener(got.succeeding());
        s.start(c);
        return c;
    }

    /**
     * Waits until all n messages have come behind the first so many: with two members that share out the queues one after
     * the other, some come twice.
     */
    private static void awaitAll(Received got, int behind, int n, int seconds) throws Exception {
        eventually(seconds, "all " + n + " messages", () -> {
            List<MessageExt> all = got.all();
            return SendCases.bodies(all.subList(behind, all.size())).equals(SendCases.expectedBodies(0, n));
        });
    }

    /** Waits until the broker has the group at its end in every queue. */
    private static void awaitCommitted(Session s, String topic, int total) throws Exception {
        List<MessageQueue> queues = s.queues(topic, Servers.A);
        eventually(30, total + " committed in " + topic, () -> {
            long sum = 0;
            for (MessageQueue q : queues) {
                sum += Math.max(0, s.committed("c", q));
            }
            return sum == total;
        });
    }

    static void consumeDirectly(Session s) throws Exception {
        String topic = s.createTopic(1);
        DefaultMQAdminExt admin = s.servers.admin;
        Received got = new Received();
        AtomicReference<ConsumeConcurrentlyStatus> outcome = new AtomicReference<>(ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        DefaultMQPushConsumer c = s.consumer("c", "-1");
        c.subscribe(topic, "*");
        c.registerMessageListener((List<MessageExt> l, org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext x) -> {
            got.add(l);
            if (outcome.get() == null) {
                throw new IllegalStateException("on purpose");
            }
            return outcome.get();
        });
        s.start(c);
        SendResult sent = s.producer().send(Session.message(topic, "TagA", 1));
        got.await(1, 30);
        String id = c.buildMQClientId();

        Map<ConsumeConcurrentlyStatus, String> results = new HashMap<>();
        results.put(ConsumeConcurrentlyStatus.CONSUME_SUCCESS, "CR_SUCCESS");
        results.put(ConsumeConcurrentlyStatus.RECONSUME_LATER, "CR_LATER");
        results.put(null, "CR_THROW_EXCEPTION");
        int times = 1;
        for (Map.Entry<ConsumeConcurrentlyStatus, String> r : results.entrySet()) {
            outcome.set(r.getKey());
            var result = admin.consumeMessageDirectly(s.group("c"), id, topic, sent.getOffsetMsgId());
            equal(result.getConsumeResult().name(), r.getValue(), "result of a direct consumption");
            equal(result.isOrder(), false, "order");
            times++;
            equal(got.size(), times, "messages received after %s", r.getValue());
        }
        for (MessageExt m : got.all()) {
            equal(text(m.getBody()), "body 1", "body");
            equal(m.getTags(), "TagA", "tags");
            equal(MessageClientIDSetter.getUniqID(m), sent.getMsgId(), "unique key");
            equal(m.getQueueOffset(), sent.getQueueOffset(), "queueOffset");
        }

        DefaultMQPushConsumer ordered = s.consumer("o", "-2");
        Received inOrder = new Received();
        ordered.subscribe(topic, "*");
        ordered.registerMessageListener((List<MessageExt> l, org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext x) -> {
            inOrder.add(l);
            return ConsumeOrderlyStatus.SUCCESS;
        });
        s.start(ordered);
        inOrder.await(1, 60);
        var result = admin.consumeMessageDirectly(s.group("o"), ordered.buildMQClientId(), topic, sent.getOffsetMsgId());
        equal(result.getConsumeResult().name() + result.isOrder(), "CR_SUCCESStrue", "result of an orderly consumer");
        equal(inOrder.size(), 2, "messages of the orderly consumer");

        refused(1, "not online", () -> admin.consumeMessageDirectly(s.group("c"), "nobody", topic, sent.getOffsetMsgId()));
        refused(1, "not online", () -> admin.consumeMessageDirectly(s.group("no"), id, topic, sent.getOffsetMsgId()));
    }

    static void runningInfo(Session s) throws Exception {
        String topic = s.createTopic(4);
        DefaultMQAdminExt admin = s.servers.admin;
        Received got = new Received();
        DefaultMQPushConsumer one = taking(s, topic, "-1", got);
        DefaultMQPushConsumer two = taking(s, topic, "-2", got);
        s.send(topic, 20);
        awaitAll(got, 0, 20, 60);
        Set<Integer> queues = new TreeSet<>();
        eventually(30, "all four queues among the two", () -> {
            queues.clear();
            for (DefaultMQPushConsumer c : List.of(one, two)) {
                var info = admin.getConsumerRunningInfo(s.group("c"), c.buildMQClientId(), false);
                for (MessageQueue q : info.getMqTable().keySet()) {
                    if (q.getTopic().equals(topic)) {
                        that(queues.add(q.getQueueId()), "queue %d at one member only", q.getQueueId());
                    }
                }
            }
            return queues.size() == 4;
        });
        var quiet = admin.getConsumerRunningInfo(s.group("c"), one.buildMQClientId(), false);
        equal(quiet.getJstack(), null, "jstack that was not asked for");
        equal(quiet.getProperties().getProperty("PROP_CONSUME_TYPE"), "CONSUME_PASSIVELY", "consume type");
        that(quiet.getProperties().getProperty("PROP_CLIENT_VERSION").startsWith("V"), "a client version");
        that(quiet.getSubscriptionSet().stream().anyMatch(d -> d.getTopic().equals(topic)), "the subscription of %s", topic);
        that(quiet.getStatusTable().containsKey(topic), "a status of %s", topic);
        var busy = admin.getConsumerRunningInfo(s.group("c"), two.buildMQClientId(), true);
        that(busy.getJstack().contains("ConsumeMessageThread_") && busy.getJstack().contains("java.lang.Thread"), "stacks of threads");
        refused(1, "not online", () -> admin.getConsumerRunningInfo(s.group("c"), "nobody", true));
    }

    static void resetOnline(Session s) throws Exception {
        String topic = s.createTopic(2);
        DefaultMQAdminExt admin = s.servers.admin;
        Received got = new Received();
        taking(s, topic, "-1", got);
        taking(s, topic, "-2", got);
        s.send(topic, 20);
        awaitAll(got, 0, 20, 60);
        awaitCommitted(s, topic, 20);
        Map<MessageQueue, Long> back = new HashMap<>();
        long first = Long.MAX_VALUE;
        for (MessageQueue q : s.queues(topic, Servers.A)) {
            back.put(q, 0L);
            first = Math.min(first, s.readQueue(q, 10).get(0).getStoreTimestamp());
        }
        int had = got.size();
        equal(admin.resetOffsetByTimestamp(topic, s.group("c"), first - 1000, true), back, "offsets to which the group was reset");
        awaitAll(got, had, 20, 60); // the client waits for 10 s in the middle of it
        awaitCommitted(s, topic, 20);
    }

    /** What a stuck consumer has before it is skipped: timestamp -1. */
    static void skipOnline(Session s) throws Exception {
        String topic = s.createTopic(1);
        DefaultMQAdminExt admin = s.servers.admin;
        Received got = new Received();
        DefaultMQPushConsumer c = s.consumer("c", "-1");
        c.setPullThresholdForQueue(2); // it takes up few of the messages that wait
        c.setPullBatchSize(1);
        c.setConsumeThreadMin(1);
        c.setConsumeThreadMax(1);
        java.util.concurrent.CountDownLatch stuck = new java.util.concurrent.CountDownLatch(1);
        s.atEnd(stuck::countDown);
        c.subscribe(topic, "*");
        c.registerMessageListener((List<MessageExt> l, org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext x) -> {
            got.add(l);
            if (got.size() <= 2) {
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            }
            try {
                stuck.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        s.start(c);
        s.send(topic, 30);
        MessageQueue q = s.queues(topic, Servers.A).get(0);
        s.readQueue(q, 30);
        eventually(40, "the group behind the second message", () -> s.committed("c", q) == 2 && got.size() == 3);
        equal(admin.resetOffsetByTimestamp(topic, s.group("c"), -1, true), Map.of(q, 30L), "offsets to which the group was reset");
        eventually(40, "the group at the end", () -> s.committed("c", q) == 30);
        stuck.countDown();
        s.producer().send(Session.message(topic, "TagA", 1000));
        eventually(30, "the new message", () -> got.all().stream().anyMatch(m -> text(m.getBody()).equals("body 1000")));
        that(got.size() < 15, "most of the waiting messages skipped, got %d", got.size());
    }

    static void resetOffline(Session s) throws Exception {
        String topic = s.createTopic(2);
        DefaultMQAdminExt admin = s.servers.admin;
        refused(1, "THe consumer group <" + s.group("c") + "> not exist", () -> admin.resetOffsetByTimestamp(topic, s.group("c"), 0, true));
        Received before = new Received();
        DefaultMQPushConsumer c = taking(s, topic, "-1", before);
        s.send(topic, 20);
        before.await(20, 60);
        c.shutdown();
        awaitCommitted(s, topic, 20);
        refused(206, "Consumer not online, so can not reset offset, Group: " + s.group("c") + " Topic: " + topic + " Timestamp: 0",
            () -> admin.resetOffsetByTimestamp(topic, s.group("c"), 0, true));
        int changed = 0;
        for (var stats : admin.resetOffsetByTimestampOld(s.group("c"), topic, 0, true)) {
            if (stats.getRollbackOffset() == 0 && stats.getConsumerOffset() == 10) {
                changed++;
            }
        }
        equal(changed, 2, "queues reset");
        awaitCommitted(s, topic, 0);
        Received after = new Received();
        taking(s, topic, "-2", after);
        after.await(20, 60);
    }

    static void consumeStatus(Session s) throws Exception {
        String topic = s.createTopic(2);
        DefaultMQAdminExt admin = s.servers.admin;
        Received got = new Received();
        String one = taking(s, topic, "-1", got).buildMQClientId();
        String two = taking(s, topic, "-2", got).buildMQClientId();
        s.send(topic, 20);
        awaitAll(got, 0, 20, 60);
        Map<Integer, Long> offsets = new HashMap<>();
        eventually(30, "both members with a queue at its end each", () -> {
            offsets.clear();
            Map<String, Map<MessageQueue, Long>> all = admin.getConsumeStatus(topic, s.group("c"), "");
            equal(all.keySet(), Set.of(one, two), "members");
            all.values().forEach(m -> m.forEach((q, offset) -> offsets.put(q.getQueueId(), offset)));
            return offsets.equals(Map.of(0, 10L, 1, 10L)) && all.get(one).size() == 1 && all.get(two).size() == 1;
        });
        equal(admin.getConsumeStatus(topic, s.group("c"), two).keySet(), Set.of(two), "the one that was asked for");
        equal(admin.getConsumeStatus(topic, s.group("c"), "nobody"), Map.of(), "nobody's");
    }

    static void cloneOffset(Session s) throws Exception {
        String topic = s.createTopic(2);
        DefaultMQAdminExt admin = s.servers.admin;
        Received before = new Received();
        DefaultMQPushConsumer c = taking(s, topic, "-1", before);
        s.send(topic, 20);
        before.await(20, 60);
        c.shutdown();
        awaitCommitted(s, topic, 20);
        admin.cloneGroupOffset(s.group("c"), s.group("d"), topic, true);
        for (MessageQueue q : s.queues(topic, Servers.A)) {
            equal(s.committed("d", q), 10L, "cloned offset of %s", q);
        }
        DefaultMQPushConsumer d = s.consumer("d", "-2");
        Received after = new Received();
        d.subscribe(topic, "*");
        d.registerMessageListener(after.succeeding());
        s.start(d);
        s.producer().send(Session.message(topic, "TagA", 100));
        after.await(1, 60);
        equal(text(after.all().get(0).getBody()), "body 100", "the one message of the other group");
    }

    static void timeSpan(Session s) throws Exception {
        String topic = s.createTopic(2);
        Received got = new Received();
        taking(s, topic, "-1", got);
        s.send(topic, 20);
        got.await(20, 60);
        awaitCommitted(s, topic, 20);
        var spans = s.servers.admin.queryConsumeTimeSpan(topic, s.group("c"));
        equal(spans.size(), 2, "spans");
        for (var span : spans) {
            List<MessageExt> all = s.readQueue(span.getMessageQueue(), 10);
            equal(span.getMinTimeStamp(), all.get(0).getStoreTimestamp(), "time of the first");
            equal(span.getMaxTimeStamp(), all.get(9).getStoreTimestamp(), "time of the last");
            equal(span.getConsumeTimeStamp(), all.get(9).getStoreTimestamp(), "time of the last one consumed");
            equal(span.getDelayTime(), 0L, "delay");
        }
    }

    static void brokerStats(Session s) throws Exception {
        String topic = s.createTopic(2);
        Received got = new Received();
        taking(s, topic, "-1", got);
        s.send(topic, 20);
        got.await(20, 60);
        awaitCommitted(s, topic, 20);
        var all = s.servers.admin.fetchConsumeStatsInBroker(s.servers.addr(Servers.A), false, 10000);
        equal(all.getBrokerAddr(), s.servers.addr(Servers.A), "broker");
        int found = 0;
        for (var groups : all.getConsumeStatsList()) {
            for (var stats : groups.getOrDefault(s.group("c"), List.of())) {
                for (var e : stats.getOffsetTable().entrySet()) {
                    if (e.getKey().getTopic().equals(topic)) {
                        equal(e.getValue().getBrokerOffset(), 10L, "broker offset");
                        equal(e.getValue().getConsumerOffset(), 10L, "consumer offset");
                        that(e.getValue().getLastTimestamp() > 0, "a time");
                        found++;
                    }
                }
            }
        }
        equal(found, 2, "queues of the group");
        that(all.getTotalDiff() >= 0, "a total");
        equal(s.servers.admin.fetchConsumeStatsInBroker(s.servers.addr(Servers.A), true, 10000).getConsumeStatsList().stream()
            .mapToInt(g -> g.getOrDefault(s.group("c"), List.of()).size()).sum(), 0, "ordered topics of the group");
    }

    /** A 5.x administrator asks with GET_TOPIC_CONFIG (351), which a 4.9 broker refuses. */
    static void topicConfig(Session s) throws Exception {
        String topic = s.createTopic("", 3, 2, 6, Servers.A);
        var config = s.servers.admin.examineTopicConfig(s.servers.addr(Servers.A), topic);
        equal(config.getTopicName(), topic, "name");
        equal(config.getReadQueueNums() + " " + config.getWriteQueueNums() + " " + config.getPerm(), "3 2 6", "queues and permission");
        if (OnlyHere.CLIENT5) {
            refused(17, "No topic in this broker. topic: no-such-topic",
                () -> s.servers.admin.examineTopicConfig(s.servers.addr(Servers.A), "no-such-topic"));
        }
    }
}
