package rocketd.conformance;

import static rocketd.conformance.Check.bytes;
import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.text;
import static rocketd.conformance.Check.that;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullCallback;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The pull consumer, and the offsets of queues and groups. */
final class PullCases {
    private PullCases() {
    }

    static void register() {
        Main.add("pull-consumer", PullCases::pull);
        Main.add("pull-tags", PullCases::tags);
        Main.add("pull-limits", PullCases::limits);
        Main.add("pull-long-poll", PullCases::longPoll);
        Main.add("pull-async", PullCases::async);
        Main.add("offset-commit", PullCases::commit);
        Main.add("offset-search", PullCases::search);
    }

    /** n messages into one queue, "body 0" first. */
    private static MessageQueue filled(Session s, int n) throws Exception {
        MessageQueue q = s.queues(s.createTopic(1), Servers.A).get(0);
        DefaultMQProducer p = s.producer("filler", x -> { });
        for (int i = 0; i < n; i++) {
            p.send(Session.message(q.getTopic(), "Tag" + (char) ('A' + i % 3), i), q);
        }
        s.readQueue(q, n);
        return q;
    }

    private static void result(PullResult r, PullStatus status, long next, long min, long max) {
        equal(r.getPullStatus(), status, "status");
        equal(r.getNextBeginOffset(), next, "nextBeginOffset after %s", status);
        equal(r.getMinOffset(), min, "minOffset after %s", status);
        equal(r.getMaxOffset(), max, "maxOffset after %s", status);
    }

    static void pull(Session s) throws Exception {
        MessageQueue q = filled(s, 45);
        DefaultMQPullConsumer c = s.puller("c");
        PullResult r = c.pull(q, "*", 0, 32);
        result(r, PullStatus.FOUND, 32, 0, 45);
        equal(r.getMsgFoundList().size(), 32, "found");
        for (int i = 0; i < 32; i++) {
            MessageExt m = r.getMsgFoundList().get(i);
            equal(text(m.getBody()), "body " + i, "body");
            equal(m.getQueueOffset(), (long) i, "queueOffset");
        }
        r = c.pull(q, "*", 32, 32);
        result(r, PullStatus.FOUND, 45, 0, 45);
        equal(r.getMsgFoundList().size(), 13, "found at the end");
        r = c.pull(q, "*", 7, 1);
        result(r, PullStatus.FOUND, 8, 0, 45);
        equal(text(r.getMsgFoundList().get(0).getBody()), "body 7", "body");
        result(c.pull(q, "*", 45, 32), PullStatus.NO_NEW_MSG, 45, 0, 45);
        result(c.pull(q, "*", 100, 32), PullStatus.OFFSET_ILLEGAL, 45, 0, 45);
        // A queue that was never written.
        MessageQueue empty = s.queues(s.createTopic("-empty", 1, 1, 6, Servers.A), Servers.A).get(0);
        result(c.pull(empty, "*", 0, 32), PullStatus.NO_NEW_MSG, 0, 0, 0);
        result(c.pull(empty, "*", 5, 32), PullStatus.OFFSET_ILLEGAL, 0, 0, 0);
        equal(c.minOffset(empty), 0L, "minOffset");
        equal(c.maxOffset(empty), 0L, "maxOffset");
    }

    /** How much one pull brings, whatever it asks for. */
    static void limits(Session s) throws Exception {
        MessageQueue q = filled(s, 60);
        DefaultMQPullConsumer c = s.puller("c");
        equal(c.pull(q, "*", 0, 1000).getMsgFoundList().size(), 32, "messages from memory");
        MessageQueue big = s.queues(s.createTopic("-big", 1, 1, 6, Servers.A), Servers.A).get(0);
        DefaultMQProducer p = s.producer("big", x -> x.setCompressMsgBodyOverHowmuch(1 << 20));
        for (int size : new int[] {100_000, 100_000, 100_000, 300_000, 10}) {
            p.send(new Message(big.getTopic(), SendCases.noise(size)), big);
        }
        s.readQueue(big, 5);
        equal(c.pull(big, "*", 0, 32).getMsgFoundList().size(), 2, "messages of 100 kB within 256 KiB");
        equal(c.pull(big, "*", 2, 32).getMsgFoundList().size(), 1, "messages before one that is too big");
        equal(c.pull(big, "*", 3, 32).getMsgFoundList().size(), 1, "messages from one that is too big");
        // Broker B takes everything for cold: 8 messages, 64 KiB.
        MessageQueue cold = s.queues(s.createTopic("-cold", 1, 1, 6, Servers.B), Servers.B).get(0);
        for (int i = 0; i < 20; i++) {
            p.send(Session.message(cold.getTopic(), "TagA", i), cold);
        }
        s.readQueue(cold, 20);
        equal(c.pull(cold, "*", 0, 32).getMsgFoundList().size(), 8, "messages from disk");
        MessageQueue coldBig = s.queues(s.createTopic("-cold-big", 1, 1, 6, Servers.B), Servers.B).get(0);
        for (int i = 0; i < 4; i++) {
            p.send(new Message(coldBig.getTopic(), SendCases.noise(30_000)), coldBig);
        }
        s.readQueue(coldBig, 4);
        equal(c.pull(coldBig, "*", 0, 32).getMsgFoundList().size(), 2, "messages of 30 kB within 64 KiB from disk");
    }

    static void tags(Session s) throws Exception {
        MessageQueue q = filled(s, 30);
        DefaultMQPullConsumer c = s.puller("c");
        PullResult r = c.pull(q, "TagB || TagC", 0, 32);
        equal(r.getPullStatus(), PullStatus.FOUND, "status");
        List<String> got = new ArrayList<>();
        r.getMsgFoundList().forEach(m -> got.add(text(m.getBody())));
        List<String> want = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            if (i % 3 != 0) {
                want.add("body " + i);
            }
        }
        equal(got, want, "bodies");
        equal(r.getNextBeginOffset(), 30L, "nextBeginOffset");
        r = c.pull(q, "TagZ", 0, 32);
        equal(r.getPullStatus(), PullStatus.NO_MATCHED_MSG, "status of a tag that nothing has");
        equal(r.getNextBeginOffset(), 30L, "nextBeginOffset beyond what does not match");
        r = c.pull(q, "TagA", 0, 4);
        equal(r.getMsgFoundList().size(), 4, "found of at most 4");
        equal(r.getNextBeginOffset(), 10L, "nextBeginOffset after the fourth TagA");
        // "Aa" and "BB" have the same hash code: the broker passes both, the client drops one.
        MessageQueue h = s.queues(s.createTopic("-hash", 1, 1, 6, Servers.A), Servers.A).get(0);
        DefaultMQProducer p = s.producer();
        p.send(new Message(h.getTopic(), "Aa", bytes("first")), h);
        p.send(new Message(h.getTopic(), "BB", bytes("second")), h);
        s.readQueue(h, 2);
        r = c.pull(h, "BB", 0, 32);
        equal(r.getMsgFoundList().size(), 1, "found of two tags with one hash code");
        equal(text(r.getMsgFoundList().get(0).getBody()), "second", "body");
    }

    static void longPoll(Session s) throws Exception {
        MessageQueue q = filled(s, 3);
        DefaultMQPullConsumer c = s.puller("c", x -> {
            x.setBrokerSuspendMaxTimeMillis(15000);
            x.setConsumerTimeoutMillisWhenSuspend(25000);
        });
        DefaultMQProducer p = s.producer();
        // A message with another tag ends no poll when it arrives, but the official broker also looks every 5 s, and then
        // ends those behind which there is anything: so a client pulls until it has found something.
        CompletableFuture<PullResult> held = CompletableFuture.supplyAsync(() -> {
            try {
                PullResult r = c.pullBlockIfNotFound(q, "TagX", 3, 32);
                while (r.getPullStatus() == PullStatus.NO_MATCHED_MSG) {
                    r = c.pullBlockIfNotFound(q, "TagX", r.getNextBeginOffset(), 32);
                }
                return r;
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        Thread.sleep(500);
        p.send(new Message(q.getTopic(), "TagY", bytes("other tag")), q);
        Thread.sleep(500);
        that(!held.isDone(), "nothing found yet");
        // One with the right tag must end it, at once.
        long sent = System.nanoTime();
        p.send(new Message(q.getTopic(), "TagX", bytes("wanted")), q);
        PullResult r = held.get(20, TimeUnit.SECONDS);
        long ms = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - sent);
        equal(r.getPullStatus(), PullStatus.FOUND, "status");
        equal(text(r.getMsgFoundList().get(0).getBody()), "wanted", "body");
        equal(r.getNextBeginOffset(), 5L, "nextBeginOffset");
        that(ms < 4000, "the poll ended by the message's arrival, took %d ms", ms);

        DefaultMQPullConsumer brief = s.puller("brief", x -> {
            x.setBrokerSuspendMaxTimeMillis(1000);
            x.setConsumerTimeoutMillisWhenSuspend(25000);
        });
        long began = System.nanoTime();
        r = brief.pullBlockIfNotFound(q, "*", 5, 32);
        ms = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
        result(r, PullStatus.NO_NEW_MSG, 5, 0, 5);
        // The official broker looks for expired polls every 5 s.
        that(ms >= 900 && ms < 12000, "an answer after the suspend time, took %d ms", ms);
    }

    static void async(Session s) throws Exception {
        MessageQueue q = filled(s, 5);
        DefaultMQPullConsumer c = s.puller("c");
        CompletableFuture<PullResult> got = new CompletableFuture<>();
        c.pull(q, "*", 0, 32, new PullCallback() {
            @Override public void onSuccess(PullResult r) {
                got.complete(r);
            }

            @Override public void onException(Throwable e) {
                got.completeExceptionally(e);
            }
        });
        PullResult r = got.get(20, TimeUnit.SECONDS);
        result(r, PullStatus.FOUND, 5, 0, 5);
        equal(r.getMsgFoundList().size(), 5, "found");
    }

    static void commit(Session s) throws Exception {
        MessageQueue q = filled(s, 10);
        DefaultMQPullConsumer c = s.puller("c");
        // A new group stands at 0 as long as the queue's first message is still in memory.
        equal(c.fetchConsumeOffset(q, true), 0L, "offset of a new group");
        c.updateConsumeOffset(q, 7);
        c.getOffsetStore().persist(q);
        eventually(10, "offset 7 in the broker", () -> c.fetchConsumeOffset(q, true) == 7);
        equal(s.committed("c", q), 7L, "committed");
        // Another instance of the group sees it.
        DefaultMQPullConsumer again = new DefaultMQPullConsumer(s.group("c"));
        s.configure(again, "-again");
        again.start();
        s.atEnd(again::shutdown);
        equal(again.fetchConsumeOffset(q, true), 7L, "offset in another instance");
        // An offset may be set back.
        again.updateConsumeOffset(q, 2);
        again.getOffsetStore().persist(q);
        eventually(10, "offset 2 in the broker", () -> s.committed("c", q) == 2);
    }

    static void search(Session s) throws Exception {
        MessageQueue q = s.queues(s.createTopic(1), Servers.A).get(0);
        DefaultMQPullConsumer c = s.puller("c");
        equal(c.minOffset(q), 0L, "minOffset of an empty queue");
        equal(c.maxOffset(q), 0L, "maxOffset of an empty queue");
        equal(c.searchOffset(q, System.currentTimeMillis()), 0L, "searched in an empty queue");
        DefaultMQProducer p = s.producer();
        for (int i = 0; i < 5; i++) {
            p.send(Session.message(q.getTopic(), "TagA", i), q);
            Thread.sleep(60);
        }
        List<MessageExt> all = s.readQueue(q, 5);
        equal(c.minOffset(q), 0L, "minOffset");
        equal(c.maxOffset(q), 5L, "maxOffset");
        equal(c.earliestMsgStoreTime(q), all.get(0).getStoreTimestamp(), "earliest store time");
        for (int i = 0; i < 5; i++) {
            long t = all.get(i).getStoreTimestamp();
            equal(c.searchOffset(q, t), (long) i, "searched the time of message %d", i);
            // 4.9 takes the message nearest in time, before or after.
            equal(c.searchOffset(q, t + 10), (long) i, "searched 10 ms after message %d", i);
            equal(c.searchOffset(q, t - 10), (long) i, "searched 10 ms before message %d", i);
        }
        equal(c.searchOffset(q, all.get(0).getStoreTimestamp() - 3600_000), 0L, "searched an hour ago");
        equal(c.searchOffset(q, System.currentTimeMillis() + 3600_000), 4L, "searched in the future");
    }
}
