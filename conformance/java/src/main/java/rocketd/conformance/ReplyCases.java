package rocketd.conformance;

import static rocketd.conformance.Check.bytes;
import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.text;
import static rocketd.conformance.Check.that;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Requests and replies. A reply goes to any broker of the cluster, which must know the requester: so the topics of these
 * cases are on all of them.
 */
final class ReplyCases {
    private static final String REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC";
    private static final int PATIENCE = 80_000; // ms; a retry waits until its consumer looks for new routes

    private ReplyCases() {
    }

    static void register() {
        Main.add("request-reply", ReplyCases::answered);
        Main.add("request-retried", ReplyCases::retried);
        Main.add("request-unanswered", ReplyCases::unanswered);
        Main.add("request-requester-gone", ReplyCases::gone);
        Main.add("request-cluster", ReplyCases::cluster);
    }

    private static String topic(Session s) throws Exception {
        return s.createTopic("", 2, 2, 6, Servers.A, Servers.B);
    }

    private static DefaultMQProducer producer(Session s, String group, String instance) throws Exception {
        return s.producer(group, p -> s.configure(p, instance));
    }

    /** A consumer that answers "re: body", after having failed so many times. */
    private static void answering(Session s, String topic, int failures) throws Exception {
        DefaultMQProducer replier = producer(s, "replier", "-r");
        DefaultMQPushConsumer c = s.consumer("c", "-r");
        c.subscribe(topic, "*");
        c.registerMessageListener((List<MessageExt> l, ConsumeConcurrentlyContext x) -> {
            for (MessageExt m : l) {
                if (m.getReconsumeTimes() < failures) {
                    x.setDelayLevelWhenNextConsume(1);
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                try {
                    Message reply = MessageUtil.createReplyMessage(m, bytes("re: " + text(m.getBody())));
                    equal(reply.getTopic(), REPLY_TOPIC, "topic of the reply");
                    SendResult sent = replier.send(reply, PATIENCE);
                    that(!sent.getOffsetMsgId().equals("0"), "a stored reply, got %s", sent);
                } catch (Exception | AssertionError e) {
                    Main.log(s.name, "reply to " + text(m.getBody()) + ": " + e);
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        s.start(c);
    }

    private static void answers(Message reply, String body) {
        equal(text(reply.getBody()), "re: " + body, "reply");
        equal(reply.getTopic(), REPLY_TOPIC, "topic of the reply");
        for (String p : Arrays.asList("CORRELATION_ID", "REPLY_TO_CLIENT", "PUSH_REPLY_TIME", "ARRIVE_TIME", "UNIQ_KEY")) {
            that(reply.getProperty(p) != null, "property %s in %s", p, reply.getProperties());
        }
    }

    private static CompletableFuture<Message> asked(DefaultMQProducer p, Message m, long millis) throws Exception {
        CompletableFuture<Message> f = new CompletableFuture<>();
        // Without a selector the client calls back, with null, when the request has been sent.
        p.request(m, (l, x, arg) -> l.get(Math.floorMod(x.hashCode(), l.size())), null, new RequestCallback() {
            @Override
            public void onSuccess(Message reply) {
                f.complete(reply);
            }

            @Override
            public void onException(Throwable e) {
                f.completeExceptionally(e);
            }
        }, millis);
        return f;
    }

    private static void answered(Session s) throws Exception {
        String topic = topic(s);
        answering(s, topic, 0);
        DefaultMQProducer p = producer(s, "requester", "-p");
        answers(p.request(new Message(topic, bytes("sync")), PATIENCE), "sync");
        answers(p.request(new Message(topic, bytes("selected")), (l, m, arg) -> l.get((Integer) arg), 1, PATIENCE), "selected");
        String big = String.join("", Collections.nCopies(2000, "compressible "));
        answers(p.request(new Message(topic, bytes(big)), PATIENCE), big);
        List<CompletableFuture<Message>> open = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            open.add(asked(p, new Message(topic, bytes("async " + i)), PATIENCE));
        }
        for (int i = 0; i < 20; i++) {
            answers(open.get(i).get(PATIENCE, TimeUnit.MILLISECONDS), "async " + i);
        }
    }

    /** The copy in the retry topic still says who asked; so does a delayed request. */
    private static void retried(Session s) throws Exception {
        String topic = topic(s);
        answering(s, topic, 1);
        DefaultMQProducer p = producer(s, "requester", "-p");
        CompletableFuture<Message> plain = asked(p, new Message(topic, bytes("retried")), PATIENCE);
        Message later = new Message(topic, bytes("delayed"));
        later.setDelayTimeLevel(1);
        CompletableFuture<Message> delayed = asked(p, later, PATIENCE);
        answers(plain.get(PATIENCE, TimeUnit.MILLISECONDS), "retried");
        answers(delayed.get(PATIENCE, TimeUnit.MILLISECONDS), "delayed");
    }

    private static void unanswered(Session s) throws Exception {
        String topic = topic(s);
        DefaultMQProducer p = producer(s, "requester", "-p");
        try {
            Message got = p.request(new Message(topic, bytes("nobody listens")), 3000);
            throw new AssertionError("expected a time-out, got " + got);
        } catch (RequestTimeoutException e) {
            equal(e.getResponseCode(), 10006, "code");
        }
        CompletableFuture<Message> f = asked(p, new Message(topic, bytes("nobody listens")), 1000);
        try {
            throw new AssertionError("expected a time-out, got " + f.get(PATIENCE, TimeUnit.MILLISECONDS));
        } catch (ExecutionException e) {
            that(e.getCause() instanceof RequestTimeoutException, "a time-out, got %s", e.getCause());
        }
    }

    /** Whoever answers a requester that is gone hears of it; the reply is stored nevertheless. */
    private static void gone(Session s) throws Exception {
        String topic = topic(s);
        DefaultMQProducer p = producer(s, "requester", "-p");
        asked(p, new Message(topic, bytes("and away")), PATIENCE);
        Received got = new Received();
        DefaultMQPushConsumer c = s.consumer("c", "-c");
        c.subscribe(topic, "*");
        c.registerMessageListener(got.succeeding());
        s.start(c);
        got.await(1, 30);
        p.shutdown();
        MessageExt request = got.all().get(0);
        Message reply = MessageUtil.createReplyMessage(request, bytes("too late"));
        DefaultMQProducer replier = producer(s, "replier", "-c");
        replier.setRetryTimesWhenSendFailed(0);
        try {
            throw new AssertionError("expected a failure, got " + replier.send(reply, PATIENCE));
        } catch (MQClientException e) {
            equal(e.getResponseCode(), 1, "code");
            String remark = "push reply message fail, channel of <" + request.getProperty("REPLY_TO_CLIENT") + "> not found.";
            that(String.valueOf(e.getCause()).contains(remark), "%s, got %s", remark, e.getCause());
        }
        String id = request.getProperty("CORRELATION_ID");
        Check.eventually(20, "the reply in its topic", () -> s.readNow(REPLY_TOPIC).stream().anyMatch(m ->
            id.equals(m.getProperty("CORRELATION_ID")) && text(m.getBody()).equals("too late")));
    }

    /** Messages of every kind say which cluster they are of; a reply can't be made without it. */
    private static void cluster(Session s) throws Exception {
        String topic = topic(s);
        DefaultMQProducer p = producer(s, "p", "-p");
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            batch.add(new Message(topic, "TagA", "key-" + i, bytes("batch " + i)));
        }
        p.send(batch);
        Message delayed = new Message(topic, bytes("delayed"));
        delayed.setDelayTimeLevel(1);
        p.send(delayed);
        Received got = new Received();
        DefaultMQPushConsumer c = s.consumer("c", "-c");
        c.subscribe(topic, "*");
        c.registerMessageListener((List<MessageExt> l, ConsumeConcurrentlyContext x) -> {
            x.setDelayLevelWhenNextConsume(1);
            got.add(l);
            return l.get(0).getReconsumeTimes() == 0 ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        s.start(c);
        got.await(8, 80);
        for (MessageExt m : got.all()) {
            equal(m.getProperty("CLUSTER"), "DefaultCluster", "CLUSTER of %s", m);
            equal(MessageUtil.createReplyMessage(m, bytes("x")).getTopic(), REPLY_TOPIC, "topic of a reply to %s", m);
        }
    }
}
