package rocketd.conformance;

import static rocketd.conformance.Check.bytes;
import static rocketd.conformance.Check.eventually;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.exception.RemotingException;

/**
 * What one case works with: topics and groups named after it, and clients that end with it. The clients of a
 * session share one client instance (connections, heartbeats) unless an instance name is given.
 */
final class Session {
    final String name;
    final Servers servers;

    private final String prefix;
    private final Deque<Runnable> ends = new ArrayDeque<>();
    private final AtomicInteger readers = new AtomicInteger();
    private DefaultMQPullConsumer reader;

    Session(String name, String prefix, Servers servers) {
        this.name = name;
        this.prefix = prefix;
        this.servers = servers;
    }

    String topic(String suffix) {
        return prefix + "-" + name + suffix;
    }

    String group(String what) {
        return "G-" + prefix + "-" + name + "-" + what;
    }

    /** A topic of that many queues on broker A. */
    String createTopic(int queues) throws Exception {
        return createTopic("", queues, queues, 6, Servers.A);
    }

    /** Creates a topic on the brokers and waits until the name server routes it there. */
    String createTopic(String suffix, int read, int write, int perm, String... brokers) throws Exception {
        String topic = topic(suffix);
        for (String b : brokers) {
            eventually(30, "an answer of " + b, () -> {
                try {
                    servers.admin.createAndUpdateTopicConfig(servers.addr(b), new TopicConfig(topic, read, write, perm));
                    return true;
                } catch (RemotingException e) {
                    return false; // it connects for 3 s only, which is little on a busy machine
                }
            });
        }
        for (String b : brokers) {
            awaitRoute(topic, b, write, perm);
        }
        return topic;
    }

    /** Waits until the name server's route has the topic on the broker with so many queues to write. */
    void awaitRoute(String topic, String broker, int write, int perm) throws Exception {
        eventually(20, "route of " + topic + " at " + broker, () -> {
            try {
                return servers.admin.examineTopicRouteInfo(topic).getQueueDatas().stream().anyMatch(q ->
                    q.getBrokerName().equals(broker) && q.getWriteQueueNums() == write && q.getPerm() == perm);
            } catch (MQClientException e) {
                return false;
            }
        });
    }

    /** Points a client at the servers; instance "" is the session's own. */
    void configure(ClientConfig c, String instance) {
        c.setNamesrvAddr(servers.namesrv);
        c.setInstanceName(prefix + "-" + name + instance);
        // When a rebalance changes the subscription's version just while a heartbeat is under way, the client skips
        // telling the broker, which then refuses its pulls until the next heartbeat: 30 s by default.
        c.setHeartbeatBrokerInterval(2000);
    }

    /** To be run when the case has ended, last first. */
    synchronized void atEnd(Runnable r) {
        ends.push(r);
    }

    interface Tuning<T> {
        void tune(T client) throws Exception;
    }

    DefaultMQProducer producer() throws Exception {
        return producer("p", p -> { });
    }

    DefaultMQProducer producer(String group, Tuning<DefaultMQProducer> t) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer(group(group));
        configure(p, "");
        p.setSendMsgTimeout(10000);
        t.tune(p);
        p.start();
        atEnd(p::shutdown);
        return p;
    }

    /** A push consumer that is configured but not started; it reads from the first offset. */
    DefaultMQPushConsumer consumer(String group, String instance) {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group(group));
        configure(c, instance);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setConsumeThreadMin(4);
        c.setConsumeThreadMax(4);
        // Else a shutdown does not commit what the listener is just done with.
        c.setAwaitTerminationMillisWhenShutdown(5000);
        return c;
    }

    void start(DefaultMQPushConsumer c) throws Exception {
        c.start();
        atEnd(c::shutdown);
    }

    DefaultMQPullConsumer puller(String group) throws Exception {
        return puller(group, c -> { });
    }

    DefaultMQPullConsumer puller(String group, Tuning<DefaultMQPullConsumer> t) throws Exception {
        DefaultMQPullConsumer c = new DefaultMQPullConsumer(group(group));
        configure(c, "");
        t.tune(c);
        c.start();
        atEnd(c::shutdown);
        return c;
    }

    /** A message with tag, key and a body that tells its number. */
    static Message message(String topic, String tag, int n) {
        return new Message(topic, tag, "key-" + n, bytes("body " + n));
    }

    /** Sends n messages round-robin over the queues. */
    void send(String topic, int n) throws Exception {
        DefaultMQProducer p = producer("s" + readers.incrementAndGet(), x -> { });
        for (int i = 0; i < n; i++) {
            p.send(message(topic, "TagA", i));
        }
    }

    /** What can be read of a topic now, queue by queue in the order of offsets. */
    List<MessageExt> readNow(String topic) throws Exception {
        List<MessageExt> all = new ArrayList<>();
        for (MessageQueue q : reader().fetchSubscribeMessageQueues(topic)) {
            all.addAll(readQueue(q));
        }
        return all;
    }

    /** All n messages of a queue; they can be read a moment after they were sent. */
    List<MessageExt> readQueue(MessageQueue q, int n) throws Exception {
        eventually(15, n + " messages in " + q, () -> reader().maxOffset(q) >= n);
        List<MessageExt> got = readQueue(q);
        Check.equal(got.size(), n, "messages in %s", q);
        return got;
    }

    private List<MessageExt> readQueue(MessageQueue q) throws Exception {
        List<MessageExt> all = new ArrayList<>();
        DefaultMQPullConsumer r = reader();
        long offset = r.minOffset(q);
        long max = r.maxOffset(q);
        while (offset < max) {
            PullResult got = r.pull(q, "*", offset, 32);
            if (got.getPullStatus() == PullStatus.FOUND) {
                all.addAll(got.getMsgFoundList());
            }
            Check.that(got.getNextBeginOffset() > offset, "progress beyond offset %d of %s, got %s", offset, q, got);
            offset = got.getNextBeginOffset();
        }
        return all;
    }

    /** All n messages of a topic, queue by queue; they can be read a moment after they were sent. */
    List<MessageExt> readAll(String topic, int n) throws Exception {
        return readUntil(topic, n, 15);
    }

    List<MessageExt> readUntil(String topic, int count, int seconds) throws Exception {
        List<MessageExt> got = new ArrayList<>();
        eventually(seconds, count + " messages in " + topic, () -> {
            got.clear();
            got.addAll(readNow(topic));
            return got.size() >= count;
        });
        Check.equal(got.size(), count, "messages in %s", topic);
        return got;
    }

    synchronized DefaultMQPullConsumer reader() throws Exception {
        if (reader == null) {
            reader = puller("reader");
        }
        return reader;
    }

    /** The queues of a topic by id, on one broker. */
    List<MessageQueue> queues(String topic, String broker) throws Exception {
        List<MessageQueue> qs = new ArrayList<>(reader().fetchSubscribeMessageQueues(topic));
        qs.removeIf(q -> !q.getBrokerName().equals(broker));
        qs.sort(null);
        return qs;
    }

    synchronized void close() {
        while (!ends.isEmpty()) {
            try {
                ends.pop().run();
            } catch (RuntimeException e) {
                Main.log(name, "at its end: " + e);
            }
        }
    }

    /** The group's offset in a queue as the broker has it; -1 when it has none. */
    long committed(String group, MessageQueue q) throws Exception {
        var api = reader().getDefaultMQPullConsumerImpl().getRebalanceImpl().getmQClientFactory().getMQClientAPIImpl();
        return OnlyHere.committed(api, servers.addr(q.getBrokerName()), group(group), q);
    }

    /**
     * Lets a group be known, with its retry topic, before its first message. A consumer finds a retry topic that
     * its own first heartbeat makes only by its next rebalance, up to 20 s later.
     */
    void knownGroup(String group, String topic) throws Exception {
        DefaultMQPushConsumer c = consumer(group, "-first");
        c.subscribe(topic, "*");
        c.registerMessageListener(new Received().succeeding());
        c.start();
        awaitRoute("%RETRY%" + group(group), Servers.A, 1, 6);
        c.shutdown();
    }
}
