package rocketd.conformance;

import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.that;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Consumers of a group share out the queues. They need the broker's list of the group's members, and its notice
 * when that changes: without the notice they would look again only after 20 s.
 */
final class RebalanceCases {
    /** Less than the client's own rebalance interval of 20 s. */
    private static final int NOTICED_SECONDS = 15;

    private RebalanceCases() {
    }

    static void register() {
        Main.add("rebalance-cluster", RebalanceCases::cluster);
        Main.add("rebalance-lost-connection", RebalanceCases::lost);
        Main.add("allocate-averagely", s -> allocate(s, 6, 0,
            i -> new AllocateMessageQueueAveragely(), "A0 A1 A2", "A3 A4 A5"));
        Main.add("allocate-averagely-by-circle", s -> allocate(s, 6, 0,
            i -> new AllocateMessageQueueAveragelyByCircle(), "A0 A2 A4", "A1 A3 A5"));
        Main.add("allocate-by-config", RebalanceCases::byConfig);
        Main.add("allocate-by-machine-room", s -> allocate(s, 2, 5, i -> {
            AllocateMessageQueueByMachineRoom r = new AllocateMessageQueueByMachineRoom();
            r.setConsumeridcs(Set.of("room-1"));
            return r;
        }, "B0 B1 B4", "B2 B3"));
        Main.add("allocate-machine-room-nearby", s -> allocate(s, 3, 2, i ->
            new AllocateMachineRoomNearby(new AllocateMessageQueueAveragely(), new AllocateMachineRoomNearby.MachineRoomResolver() {
                @Override public String brokerDeployIn(MessageQueue q) {
                    return q.getBrokerName().equals(Servers.A) ? "room-0" : "room-1";
                }

                @Override public String consumerDeployIn(String clientId) {
                    return clientId.contains("-member-0") ? "room-0" : "room-1";
                }
            }), "A0 A1 A2", "B0 B1"));
        Main.add("allocate-consistent-hash", RebalanceCases::consistentHash);
    }

    interface Strategy {
        AllocateMessageQueueStrategy of(int member);
    }

    private static DefaultMQPushConsumer member(Session s, int i, String topic, AllocateMessageQueueStrategy a, Received got)
        throws Exception {
        DefaultMQPushConsumer c = s.consumer("c", "-member-" + i);
        if (a != null) {
            c.setAllocateMessageQueueStrategy(a);
        }
        c.subscribe(topic, "*");
        c.registerMessageListener(got.succeeding());
        s.start(c);
        return c;
    }

    /** The queues that a consumer works on, "A0 B1" for queue 0 of broker A and queue 1 of broker B. */
    static String owned(DefaultMQPushConsumer c, String topic) {
        Set<String> names = new TreeSet<>();
        for (MessageQueue q : c.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet()) {
            if (q.getTopic().equals(topic)) {
                names.add(shortName(q));
            }
        }
        return String.join(" ", names);
    }

    private static String shortName(MessageQueue q) {
        return (q.getBrokerName().equals(Servers.A) ? "A" : "B") + q.getQueueId();
    }

    private static void allocate(Session s, int onA, int onB, Strategy strategy, String first, String second) throws Exception {
        String topic = s.createTopic("", onA, onA, 6, Servers.A);
        if (onB > 0) {
            s.createTopic("", onB, onB, 6, Servers.B);
        }
        shared(s, topic, strategy, first, second);
    }

    private static void shared(Session s, String topic, Strategy strategy, String first, String second) throws Exception {
        Received[] got = {new Received(), new Received()};
        DefaultMQPushConsumer[] c = new DefaultMQPushConsumer[2];
        for (int i = 0; i < 2; i++) {
            c[i] = member(s, i, topic, strategy.of(i), got[i]);
        }
        String[] want = {first, second};
        eventuallyOwned(c, topic, want);
        // Two messages into each queue: each must come to the queue's owner.
        DefaultMQProducer p = s.producer();
        int n = 0;
        for (MessageQueue q : p.fetchPublishMessageQueues(topic)) {
            for (int i = 0; i < 2; i++) {
                p.send(Session.message(topic, "TagA", n++), q);
            }
        }
        for (int i = 0; i < 2; i++) {
            got[i].await(2 * want[i].split(" ").length, 20);
            Set<String> from = new TreeSet<>();
            for (MessageExt m : got[i].all()) {
                from.add(shortName(new MessageQueue(topic, m.getBrokerName(), m.getQueueId())));
            }
            equal(String.join(" ", from), want[i], "queues that member %d got messages of", i);
        }
    }

    private static void eventuallyOwned(DefaultMQPushConsumer[] c, String topic, String... want) throws Exception {
        eventuallyOwned(NOTICED_SECONDS, c, topic, want);
    }

    private static void eventuallyOwned(int seconds, DefaultMQPushConsumer[] c, String topic, String... want) throws Exception {
        try {
            eventually(seconds, "queues", () -> {
                for (int i = 0; i < want.length; i++) {
                    if (!owned(c[i], topic).equals(want[i])) {
                        return false;
                    }
                }
                return true;
            });
        } catch (AssertionError e) {
            StringBuilder b = new StringBuilder("queues of the members after " + seconds + " s:");
            for (int i = 0; i < want.length; i++) {
                b.append(" got [").append(owned(c[i], topic)).append("] want [").append(want[i]).append("]");
            }
            throw new AssertionError(b.toString());
        }
    }

    static void byConfig(Session s) throws Exception {
        String topic = s.createTopic(6);
        List<MessageQueue> qs = s.queues(topic, Servers.A);
        shared(s, topic, i -> {
            AllocateMessageQueueByConfig a = new AllocateMessageQueueByConfig();
            a.setMessageQueueList(i == 0 ? qs.subList(4, 5) : new ArrayList<>(List.of(qs.get(0), qs.get(3))));
            return a;
        }, "A4", "A0 A3");
    }

    static void consistentHash(Session s) throws Exception {
        String topic = s.createTopic(16);
        // The strategy is a pure function of the queues and the members; both clients must have seen the same.
        List<MessageQueue> qs = s.queues(topic, Servers.A);
        DefaultMQPushConsumer probe = s.consumer("c", "-member-0");
        String[] cids = {probe.buildMQClientId(), s.consumer("c", "-member-1").buildMQClientId()};
        String[] want = new String[2];
        for (int i = 0; i < 2; i++) {
            Set<String> names = new TreeSet<>();
            for (MessageQueue q : new AllocateMessageQueueConsistentHash().allocate(s.group("c"), cids[i], qs, List.of(cids))) {
                names.add(shortName(q));
            }
            want[i] = String.join(" ", names);
        }
        that(!want[0].isEmpty() && !want[1].isEmpty(), "a share for each, got [%s] and [%s]", want[0], want[1]);
        shared(s, topic, i -> new AllocateMessageQueueConsistentHash(), want[0], want[1]);
    }

    /** A member whose connections break does not say goodbye: the broker must notice by itself. */
    static void lost(Session s) throws Exception {
        String topic = s.createTopic(4);
        Received[] got = {new Received(), new Received()};
        DefaultMQPushConsumer[] c = new DefaultMQPushConsumer[2];
        for (int i = 0; i < 2; i++) {
            c[i] = member(s, i, topic, null, got[i]);
        }
        eventuallyOwned(c, topic, "A0 A1", "A2 A3");
        c[1].getDefaultMQPushConsumerImpl().getRebalanceImpl().getmQClientFactory().getMQClientAPIImpl().getRemotingClient().shutdown();
        // Netty may take 15 s to let go of the connections; the broker would wait 120 s for a heartbeat.
        eventuallyOwned(50, new DefaultMQPushConsumer[] {c[0]}, topic, "A0 A1 A2 A3");
        s.send(topic, 8);
        got[0].await(8, 20);
    }

    static void cluster(Session s) throws Exception {
        String topic = s.createTopic(6);
        Received[] got = {new Received(), new Received(), new Received()};
        DefaultMQPushConsumer[] c = new DefaultMQPushConsumer[3];
        c[0] = member(s, 0, topic, null, got[0]);
        eventuallyOwned(c, topic, "A0 A1 A2 A3 A4 A5");
        c[1] = member(s, 1, topic, null, got[1]);
        c[2] = member(s, 2, topic, null, got[2]);
        eventuallyOwned(c, topic, "A0 A1", "A2 A3", "A4 A5");
        s.send(topic, 60);
        for (Received r : got) {
            r.await(20, 20);
        }
        List<MessageExt> all = new ArrayList<>();
        for (Received r : got) {
            all.addAll(r.all());
        }
        equal(SendCases.bodies(all), SendCases.expectedBodies(0, 60), "bodies, each at one member");
        // One goes in an orderly way: the others take over, and nothing is lost or repeated.
        c[1].shutdown();
        eventuallyOwned(new DefaultMQPushConsumer[] {c[0], c[2]}, topic, "A0 A1 A2", "A3 A4 A5");
        s.send(topic, 60);
        got[0].await(20 + 30, 20);
        got[2].await(20 + 30, 20);
        got[1].nothingMore(0);
    }
}
