package rocketd.conformance;

import java.io.FileOutputStream;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * One member of a group that consumes in order; conformance/ordering starts several. Arguments are {@code key=value}:
 * namesrv, group, member (its name), topics (comma-separated), history (a file). It appends what it consumes to the history,
 * in the form of conformance/ordering/check.go, each batch with one write. It says READY when it is started and ends, in
 * order, when its standard input does.
 */
public final class OrderlyMember {
    private OrderlyMember() {
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> opt = new HashMap<>();
        for (String a : args) {
            opt.put(a.substring(0, a.indexOf('=')), a.substring(a.indexOf('=') + 1));
        }
        String member = opt.get("member");
        FileOutputStream history = new FileOutputStream(opt.get("history"), true);
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(opt.get("group"));
        c.setNamesrvAddr(opt.get("namesrv"));
        c.setInstanceName(member);
        c.setHeartbeatBrokerInterval(2000);
        c.setPollNameServerInterval(2000);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setConsumeThreadMin(4);
        c.setConsumeThreadMax(4);
        c.setConsumeMessageBatchMaxSize(8);
        c.setAwaitTerminationMillisWhenShutdown(5000);
        for (String topic : opt.get("topics").split(",")) {
            c.subscribe(topic, "*");
        }
        c.registerMessageListener((MessageListenerOrderly) (l, context) -> {
            try {
                consume(l, member, history);
                return ConsumeOrderlyStatus.SUCCESS;
            } catch (IOException e) {
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
        });
        c.start();
        System.out.println("READY");
        while (System.in.read() >= 0) {
            continue;
        }
        c.shutdown();
        System.exit(0);
    }

    private static void consume(List<MessageExt> l, String member, FileOutputStream history) throws IOException {
        StringBuilder lines = new StringBuilder();
        String queue = l.get(0).getTopic() + "/" + l.get(0).getQueueId();
        for (MessageExt m : l) {
            lines.append("M ").append(member).append(' ').append(queue).append(' ').append(m.getQueueOffset()).append(' ')
                .append(m.getKeys()).append(' ').append(Check.text(m.getBody())).append('\n');
        }
        history.write(Check.bytes(lines.toString()));
        history.write(Check.bytes("E " + member + " " + queue + "\n"));
    }
}
