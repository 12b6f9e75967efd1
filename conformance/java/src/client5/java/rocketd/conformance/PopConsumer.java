package rocketd.conformance;

import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A stock push consumer that lets the broker share out the queues, so that it pulls or pops as the broker says. Arguments:
 * name servers, group, topic, instance name. It prints a line for each message: "got", body, reconsumeTimes, topic. A body
 * that begins with "fail" is not consumed the first time, one with "dead" never; one with "hang" never returns. It ends with its
 * standard input.
 */
public final class PopConsumer {
    private PopConsumer() {
    }

    public static void main(String[] args) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[1]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setInstanceName(args[3]);
        consumer.setClientRebalance(false);
        consumer.setPopInvisibleTime(10_000);
        consumer.setPopBatchNums(4);
        consumer.setConsumeThreadMin(4);
        consumer.setConsumeThreadMax(4);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[2], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                String body = new String(m.getBody(), StandardCharsets.UTF_8);
                System.out.println("got " + body + " " + m.getReconsumeTimes() + " " + m.getTopic());
                if (body.startsWith("hang") && m.getReconsumeTimes() == 0) {
                    hang();
                }
                if (body.startsWith("fail") && m.getReconsumeTimes() == 0) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                if (body.startsWith("dead")) {
                    context.setDelayLevelWhenNextConsume(1); // ten seconds each time
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        System.out.println("started");
        while (System.in.read() >= 0) { // until the test closes it
        }
        consumer.shutdown();
        System.exit(0);
    }

    private static void hang() {
        try {
            Thread.sleep(3_600_000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
