package rocketd.conformance;

import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.text;
import static rocketd.conformance.Check.that;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The push consumer: concurrent, in order, broadcasting, with filters. */
final class PushCases {
    private PushCases() {
    }

    static void register() {
        Main.add("push-concurrent", PushCases::concurrent);
        Main.add("push-orderly", PushCases::orderly);
        Main.add("push-orderly-handover", PushCases::handover);
        Main.add("push-tags", PushCases::tags);
        Main.add("push-class-filter", PushCases::classFilter);
        Main.add("push-wakes-at-once", PushCases::wakes);
        Main.add("push-two-topics", PushCases::twoTopics);
        Main.add("broadcast", PushCases::broadcast);
        Main.add("offset-resume", PushCases::resume);
    }

    static void concurrent(Session s) throws Exception {
        String topic = s.createTopic(4);
        s.send(topic, 150);
        DefaultMQPushConsumer c = s.consumer("c", "");
        c.setConsumeMessageBatchMaxSize(8);
        c.subscribe(topic, "*");
        Received got = new Received();
        c.registerMessageListener(got.succeeding());
        s.start(c);
        got.await(150, 30);
        equal(SendCases.bodies(got.all()), SendCases.expectedBodies(0, 150), "bodies");
        s.send(topic, 50);
        got.await(200, 30);
        // What was consumed is committed within the client's five seconds (and with each pull).
        eventually(25, "all queues committed up to their end", () -> {
            for (MessageQueue q : s.queues(topic, Servers.A)) {
                if (s.committed("c", q) != s.reader().maxOffset(q)) {
                    return false;
                }
            }
            return true;
        });
        got.nothingMore(500);
    }

    /** A class as a filter, as of 3.x: brokers of 4.9 have no filter servers, so the client pulls nothing until it subscribes otherwise. */
    static void classFilter(Session s) throws Exception {
        String topic = s.createTopic(1);
        s.send(topic, 3);
        DefaultMQPushConsumer c = s.consumer("c", "");
        c.setPollNameServerInterval(1000); // with which classes go to filter servers
        c.subscribe(topic, "org.example.Filter", "package org.example; public class Filter {}");
        Received got = new Received();
        c.registerMessageListener(got.succeeding());
        s.start(c);
        MessageQueue q = s.queues(topic, Servers.A).get(0);
        Map<MessageQueue, ProcessQueue> own = c.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable();
        eventually(40, "the queue is its own", () -> own.containsKey(q));
        long first = own.get(q).getLastPullTimestamp();
        eventually(20, "two pulls", () -> own.get(q).getLastPullTimestamp() > first + 2000);
        equal(got.size(), 0, "messages");
        equal(s.servers.admin.examineTopicRouteInfo(topic).getFilterServerTable().size(), 0, "filter servers");
        c.subscribe(topic, "*");
        got.await(3, 40);
    }

    static void orderly(Session s) throws Exception {
        String topic = s.createTopic(4);
        DefaultMQProducer p = s.producer();
        for (int i = 0; i < 120; i++) {
            p.send(Session.message(topic, "TagA", i), (qs, m, arg) -> qs.get((Integer) arg % 4), i);
        }
        DefaultMQPushConsumer c = s.consumer("c", "");
        c.subscribe(topic, "*");
        c.setSuspendCurrentQueueTimeMillis(100);
        Received got = new Received();
        AtomicInteger suspended = new AtomicInteger();
        c.registerMessageListener((MessageListenerOrderly) (l, ctx) -> {
            // Once in the middle of queue 1, the same message must come again before those behind it.
            if (ctx.getMessageQueue().getQueueId() == 1 && l.get(0).getQueueOffset() == 10 && suspended.getAndIncrement() < 2) {
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            got.add(l);
            return ConsumeOrderlyStatus.SUCCESS;
        });
        s.start(c);
        got.await(120, 40);
        that(suspended.get() >= 3, "three deliveries of the suspended message, got %d", suspended.get());
        inOrder(got.all());
    }

    /** Offsets within each queue must rise without a gap. */
    private static void inOrder(List<MessageExt> l) {
        Map<Integer, Long> next = new HashMap<>();
        for (MessageExt m : l) {
            long want = next.getOrDefault(m.getQueueId(), 0L);
            equal(m.getQueueOffset(), want, "next offset of queue %d", m.getQueueId());
            next.put(m.getQueueId(), want + 1);
        }
    }

    /** A second ordered consumer takes over queues: the broker's locks must keep both from working on one queue. */
    static void handover(Session s) throws Exception {
        String topic = s.createTopic(4);
        DefaultMQProducer p = s.producer();
        Map<Integer, AtomicInteger> busy = new ConcurrentHashMap<>();
        AtomicBoolean overlapped = new AtomicBoolean();
        Received[] got = {new Received(), new Received()};
        Received all = new Received();
        DefaultMQPushConsumer[] c = new DefaultMQPushConsumer[2];
        for (int i = 0; i < 2; i++) {
            int me = i;
            c[i] = s.consumer("c", "-" + i);
            c[i].subscribe(topic, "*");
            c[i].registerMessageListener((MessageListenerOrderly) (l, ctx) -> {
                AtomicInteger b = busy.computeIfAbsent(ctx.getMessageQueue().getQueueId(), q -> new AtomicInteger());
                if (b.incrementAndGet() > 1) {
                    overlapped.set(true);
                }
                try {
                    Thread.sleep(10);
                    synchronized (all) {
                        got[me].add(l);
                        all.add(l);
                    }
                } catch (InterruptedException e) {
                    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                } finally {
                    b.decrementAndGet();
                }
                return ConsumeOrderlyStatus.SUCCESS;
            });
        }
        s.start(c[0]);
        for (int i = 0; i < 40; i++) {
            p.send(Session.message(topic, "TagA", i), (qs, m, arg) -> qs.get((Integer) arg % 4), i);
        }
        eventually(20, "some messages at the first consumer", () -> got[0].size() > 5);
        s.start(c[1]);
        int sent = 40;
        long end = System.currentTimeMillis() + 60000;
        while (got[1].size() < 10) {
            that(System.currentTimeMillis() < end, "messages at the second consumer within 60 s, got %d", got[1].size());
            int n = sent++;
            // What the first one has not yet unlocked, the second one would try again only after 20 s.
            c[1].getDefaultMQPushConsumerImpl().getRebalanceImpl().getmQClientFactory().rebalanceImmediately();
            p.send(Session.message(topic, "TagA", n), (qs, m, arg) -> qs.get((Integer) arg % 4), n);
            Thread.sleep(100);
        }
        int total = sent;
        eventually(30, total + " messages", () -> SendCases.expectedBodies(0, total).equals(distinct(all.all())));
        that(!overlapped.get(), "never two at work on one queue");
        // A takeover may repeat what was not committed yet, but never goes ahead of what is missing.
        Map<Integer, Long> seen = new HashMap<>();
        for (MessageExt m : all.all()) {
            long had = seen.getOrDefault(m.getQueueId(), -1L);
            that(m.getQueueOffset() <= had + 1, "no gap in queue %d: %d after %d", m.getQueueId(), m.getQueueOffset(), had);
            seen.put(m.getQueueId(), Math.max(had, m.getQueueOffset()));
        }
    }

    private static Set<String> distinct(List<MessageExt> l) {
        Set<String> b = new HashSet<>();
        l.forEach(m -> b.add(text(m.getBody())));
        return b;
    }

    static void tags(Session s) throws Exception {
        String topic = s.createTopic(4);
        DefaultMQProducer p = s.producer();
        String[] tags = {"TagA", "TagB", "TagC", null};
        Set<String> want = new HashSet<>();
        for (int i = 0; i < 40; i++) {
            p.send(new Message(topic, tags[i % 4], "key-" + i, Check.bytes("body " + i)));
            if (i % 4 == 0 || i % 4 == 2) {
                want.add("body " + i);
            }
        }
        DefaultMQPushConsumer c = s.consumer("c", "");
        c.subscribe(topic, "TagA || TagC");
        Received got = new Received();
        c.registerMessageListener(got.succeeding());
        s.start(c);
        got.await(20, 30);
        equal(SendCases.bodies(got.all()), want, "bodies");
        got.nothingMore(1000);
        // Everything was passed, also what did not match: the offsets move on.
        eventually(25, "all queues committed up to their end", () -> {
            for (MessageQueue q : s.queues(topic, Servers.A)) {
                if (s.committed("c", q) < 9) {
                    return false;
                }
            }
            return true;
        });
    }

    static void wakes(Session s) throws Exception {
        String topic = s.createTopic(1);
        DefaultMQPushConsumer c = s.consumer("c", "");
        c.subscribe(topic, "*");
        Received got = new Received();
        c.registerMessageListener(got.succeeding());
        s.start(c);
        DefaultMQProducer p = s.producer();
        p.send(Session.message(topic, "TagA", 0));
        got.await(1, 30);
        List<Long> took = new ArrayList<>();
        for (int i = 1; i <= 10; i++) {
            Thread.sleep(200);
            long t = System.nanoTime();
            p.send(Session.message(topic, "TagA", i));
            got.await(i + 1, 30);
            took.add((System.nanoTime() - t) / 1000_000);
        }
        took.sort(null);
        // The median, as the machine is shared; a poll that waits for a scan would show in all of them.
        that(took.get(5) < 500, "messages delivered on arrival, took %s ms", took);
    }

    static void twoTopics(Session s) throws Exception {
        String one = s.createTopic("-1", 2, 2, 6, Servers.A);
        String two = s.createTopic("-2", 2, 2, 6, Servers.B);
        s.send(one, 10);
        s.send(two, 10);
        DefaultMQPushConsumer c = s.consumer("c", "");
        c.subscribe(one, "*");
        c.subscribe(two, "TagA");
        Received got = new Received();
        c.registerMessageListener(got.succeeding());
        s.start(c);
        got.await(20, 30);
        equal(got.all().stream().filter(m -> m.getTopic().equals(one) && m.getBrokerName().equals(Servers.A)).count(), 10L, "of the first");
        equal(got.all().stream().filter(m -> m.getTopic().equals(two) && m.getBrokerName().equals(Servers.B)).count(), 10L, "of the second");
    }

    static void broadcast(Session s) throws Exception {
        String topic = s.createTopic(4);
        s.send(topic, 20);
        Received[] got = {new Received(), new Received()};
        DefaultMQPushConsumer[] c = new DefaultMQPushConsumer[2];
        for (int i = 0; i < 2; i++) {
            c[i] = broadcaster(s, topic, i, got[i]);
        }
        for (Received r : got) {
            r.await(20, 30);
            equal(SendCases.bodies(r.all()), SendCases.expectedBodies(0, 20), "bodies");
        }
        // One of them goes, keeps its offsets in a file, and comes back: it gets what it missed.
        c[1].shutdown();
        s.send(topic, 10);
        got[0].await(30, 30);
        Received back = new Received();
        broadcaster(s, topic, 1, back);
        back.await(10, 30);
        back.nothingMore(500);
        got[0].nothingMore(0);
    }

    private static DefaultMQPushConsumer broadcaster(Session s, String topic, int i, Received got) throws Exception {
        DefaultMQPushConsumer c = s.consumer("c", "-" + i);
        OnlyHere.broadcasting(c);
        c.subscribe(topic, "*");
        c.registerMessageListener(got.succeeding());
        s.start(c);
        return c;
    }

    static void resume(Session s) throws Exception {
        String topic = s.createTopic(4);
        s.send(topic, 20);
        for (int round = 0; round < 3; round++) {
            DefaultMQPushConsumer c = s.consumer("c", "-" + round);
            c.subscribe(topic, "*");
            Received got = new Received();
            c.registerMessageListener(got.succeeding());
            c.start();
            got.await(20, 30);
            c.shutdown();
            eventually(10, "everything committed", () -> {
                for (MessageQueue q : s.queues(topic, Servers.A)) {
                    if (s.committed("c", q) != s.reader().maxOffset(q)) {
                        return false;
                    }
                }
                return true;
            });
            s.send(topic, 20);
        }
        DefaultMQPushConsumer last = s.consumer("c", "-last");
        last.subscribe(topic, "*");
        Received got = new Received();
        last.registerMessageListener(got.succeeding());
        s.start(last);
        got.await(20, 30);
        got.nothingMore(500);
    }
}
