package rocketd.conformance;

import static rocketd.conformance.Check.eventually;

import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.MessageExt;

/** What listeners have got, in the order of arrival. */
final class Received {
    private final List<MessageExt> got = new ArrayList<>();

    synchronized void add(List<MessageExt> l) {
        got.addAll(l);
    }

    synchronized int size() {
        return got.size();
    }

    synchronized List<MessageExt> all() {
        return new ArrayList<>(got);
    }

    /** A listener that takes every message at its first delivery. */
    MessageListenerConcurrently succeeding() {
        return (l, c) -> {
            add(l);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
    }

    MessageListenerOrderly succeedingInOrder() {
        return (l, c) -> {
            add(l);
            return ConsumeOrderlyStatus.SUCCESS;
        };
    }

    /** Waits for so many messages, and fails when there are more. */
    void await(int count, int seconds) throws Exception {
        try {
            eventually(seconds, count + " messages", () -> size() >= count);
        } catch (AssertionError e) {
            throw new AssertionError(e.getMessage() + ", got " + size());
        }
        Check.equal(size(), count, "messages received");
    }

    /** Fails when anything more comes within that time: what must not happen can only be waited for. */
    void nothingMore(int millis) throws Exception {
        int had = size();
        Thread.sleep(millis);
        Check.equal(size(), had, "messages received after a pause");
    }
}
