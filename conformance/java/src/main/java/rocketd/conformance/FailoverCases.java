package rocketd.conformance;

import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.that;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageQueue;

/** A topic on two brokers, of which one fails while the producer still has it in its route. */
final class FailoverCases {
    private static final Set<String> STOPPING = Set.of("failover-stopped", "failover-latency", "failover-async");

    private FailoverCases() {
    }

    static void register() {
        Main.add("failover-stopped", FailoverCases::stopped);
        Main.add("failover-latency", FailoverCases::latency);
        Main.add("failover-async", FailoverCases::async);
        Main.add("failover-read-only", FailoverCases::readOnly);
        Main.add("failover-deleted", FailoverCases::deleted);
    }

    /** A producer that does not ask for a new route by itself, and has sent to both brokers. */
    private static DefaultMQProducer toBoth(Session s, String topic, String other, SendCases.Attempts attempts, boolean latency)
        throws Exception {
        DefaultMQProducer p = s.producer("p", x -> {
            x.setPollNameServerInterval(600_000);
            x.setSendLatencyFaultEnable(latency);
            // A failed attempt counts as 10 s or more. A slow one on a busy machine must not count as a fault.
            x.setLatencyMax(new long[] {9_000});
            x.setNotAvailableDuration(new long[] {600_000});
        });
        p.getDefaultMQProducerImpl().registerSendMessageHook(attempts);
        for (int i = 0; i < 8; i++) {
            equal(p.send(Session.message(topic, "before", i)).getSendStatus(), SendStatus.SEND_OK, "status");
        }
        equal(Set.copyOf(attempts.taken()), Set.of(s.servers.addr(Servers.A), s.servers.addr(other)), "brokers sent to");
        return p;
    }

    private static void allToA(DefaultMQProducer p, String topic, int n) throws Exception {
        for (int i = 0; i < n; i++) {
            SendResult r = p.send(Session.message(topic, "after", i));
            equal(r.getSendStatus(), SendStatus.SEND_OK, "status");
            equal(r.getMessageQueue().getBrokerName(), Servers.A, "broker");
        }
    }

    private static long times(List<String> attempts, String addr) {
        return attempts.stream().filter(addr::equals).count();
    }

    static void stopped(Session s) throws Exception {
        String topic = s.createTopic("", 2, 2, 6, Servers.A, Servers.C);
        SendCases.Attempts attempts = new SendCases.Attempts();
        DefaultMQProducer p = toBoth(s, topic, Servers.C, attempts, false);
        s.servers.stopWith(Servers.C, STOPPING);
        allToA(p, topic, 12);
        List<String> tried = attempts.taken();
        // Every second turn goes to the dead broker first.
        that(times(tried, s.servers.addr(Servers.C)) >= 3, "attempts at the stopped broker, got %s", tried);
    }

    static void latency(Session s) throws Exception {
        String topic = s.createTopic("", 2, 2, 6, Servers.A, Servers.C);
        SendCases.Attempts attempts = new SendCases.Attempts();
        DefaultMQProducer p = toBoth(s, topic, Servers.C, attempts, true);
        s.servers.stopWith(Servers.C, STOPPING);
        allToA(p, topic, 20);
        List<String> tried = attempts.taken();
        equal(times(tried, s.servers.addr(Servers.C)), 1L, "attempts at the stopped broker before it is avoided");
    }

    static void async(Session s) throws Exception {
        String topic = s.createTopic("", 2, 2, 6, Servers.A, Servers.C);
        DefaultMQProducer p = toBoth(s, topic, Servers.C, new SendCases.Attempts(), false);
        s.servers.stopWith(Servers.C, STOPPING);
        CountDownLatch answered = new CountDownLatch(12);
        AtomicReference<Object> wrong = new AtomicReference<>();
        for (int i = 0; i < 12; i++) {
            p.send(Session.message(topic, "after", i), new SendCallback() {
                @Override public void onSuccess(SendResult r) {
                    if (!r.getMessageQueue().getBrokerName().equals(Servers.A)) {
                        wrong.set(r);
                    }
                    answered.countDown();
                }

                @Override public void onException(Throwable e) {
                    wrong.set(e);
                    answered.countDown();
                }
            });
        }
        that(answered.await(30, TimeUnit.SECONDS), "all answered, %d are missing", answered.getCount());
        equal(wrong.get(), null, "failure");
    }

    static void readOnly(Session s) throws Exception {
        String topic = s.createTopic("", 2, 2, 6, Servers.A, Servers.B);
        DefaultMQProducer p = s.producer("p", x -> x.setPollNameServerInterval(500));
        Set<String> used = new HashSet<>();
        for (int i = 0; i < 8; i++) {
            used.add(p.send(Session.message(topic, "before", i)).getMessageQueue().getBrokerName());
        }
        equal(used, Set.of(Servers.A, Servers.B), "brokers sent to");
        s.servers.admin.createAndUpdateTopicConfig(s.servers.addr(Servers.B), new TopicConfig(topic, 2, 2, 4));
        eventually(15, "a route without queues to write on the read-only broker", () ->
            p.getDefaultMQProducerImpl().getTopicPublishInfoTable().get(topic).getMessageQueueList().size() == 2);
        allToA(p, topic, 12);
        equal(s.queues(topic, Servers.B).size(), 2, "queues of the read-only broker that can still be read");
    }

    static void deleted(Session s) throws Exception {
        String topic = s.createTopic("", 2, 2, 6, Servers.A, Servers.B);
        SendCases.Attempts attempts = new SendCases.Attempts();
        DefaultMQProducer p = toBoth(s, topic, Servers.B, attempts, false);
        for (MessageQueue q : s.queues(topic, Servers.B)) {
            s.readQueue(q, 2); // see TopicCases.delete
        }
        s.servers.admin.deleteTopicInBroker(Set.of(s.servers.addr(Servers.B)), topic);
        allToA(p, topic, 12);
        that(times(attempts.taken(), s.servers.addr(Servers.B)) >= 3, "attempts at the broker without the topic");
    }
}
