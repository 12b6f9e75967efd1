package rocketd.conformance;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * The stock clients that mqadmin's subcommands look at:
 *
 * <pre>
 * {@literal @}send topic broker queueId tag keys body [level]   sends a message; prints its two ids and its offset
 * {@literal @}traced topic broker queueId tag keys body         the same with a trace, by a producer that stays
 * {@literal @}batch topic broker queueId tag count              sends a batch; prints nothing
 * {@literal @}transact topic keys committed|rolledback|pending  sends a transactional message; prints its id
 * {@literal @}consume topic group count [retry|dead]            takes so many, commits, and goes. retry: the first of each
 *                                                      message fails; dead: each becomes a dead letter at once
 * {@literal @}online topic group [orderly|broadcast]            starts a consumer that stays; prints its client's id
 * {@literal @}offline group                                     ends it
 * </pre>
 */
final class AdminClients {
    private final String namesrv;
    private final DefaultMQProducer producer;
    private TransactionMQProducer transactions;
    private DefaultMQProducer traced;
    private final Map<String, DefaultMQPushConsumer> online = new LinkedHashMap<>();

    AdminClients(String namesrv) throws Exception {
        this.namesrv = namesrv;
        producer = new DefaultMQProducer("G-admin-producer");
        producer.setNamesrvAddr(namesrv);
        producer.setInstanceName("producer");
        producer.setSendMsgTimeout(10000);
        producer.start();
    }

    void run(String[] a) throws Exception {
        switch (a[0]) {
            case "@send":
            case "@traced":
                Message m = new Message(a[1], a[4], a[5], a[6].getBytes(StandardCharsets.UTF_8));
                if (a.length > 7) {
                    m.setDelayTimeLevel(Integer.parseInt(a[7]));
                }
                SendResult r = (a[0].equals("@traced") ? traced() : producer).send(m, new MessageQueue(a[1], a[2], Integer.parseInt(a[3])));
                System.out.printf("%s %s %d%n", r.getMsgId(), r.getOffsetMsgId(), r.getQueueOffset());
                break;
            case "@batch":
                List<Message> batch = new ArrayList<>();
                for (int i = 0; i < Integer.parseInt(a[5]); i++) {
                    batch.add(new Message(a[1], a[4], "batch-" + i, ("batched " + i).getBytes(StandardCharsets.UTF_8)));
                }
                producer.send(batch, new MessageQueue(a[1], a[2], Integer.parseInt(a[3])));
                break;
            case "@transact":
                transact(a[1], a[2], a[3]);
                break;
            case "@consume":
                consume(a[1], a[2], Integer.parseInt(a[3]), a.length > 4 ? a[4] : "");
                break;
            case "@online":
                online(a[1], a[2], a.length > 3 ? a[3] : "");
                break;
            case "@offline":
                online.remove(a[1]).shutdown();
                break;
            default:
                throw new IllegalArgumentException(a[0]);
        }
    }

    private DefaultMQProducer traced() throws Exception {
        if (traced == null) {
            traced = new DefaultMQProducer("G-admin-traced", true, null); // of all clients' constructors
            traced.setNamesrvAddr(namesrv);
            traced.setInstanceName("traced");
            traced.setSendMsgTimeout(10000);
            traced.start();
        }
        return traced;
    }

    private void consume(String topic, String group, int count, String how) throws Exception {
        Received got = new Received();
        DefaultMQPushConsumer c = consumer(topic, group);
        MessageListenerConcurrently listener = (l, x) -> {
            got.add(l);
            boolean fails = how.equals("dead") || how.equals("retry") && l.get(0).getReconsumeTimes() == 0;
            if (fails) {
                x.setDelayLevelWhenNextConsume(how.equals("dead") ? -1 : 1);
            }
            return fails ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
        c.registerMessageListener(listener);
        c.start();
        got.await(count, 40);
        // What failed has gone back before the consumer goes.
        Check.eventually(20, "all is done with", () -> c.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable()
            .values().stream().allMatch(q -> q.getMsgCount().get() == 0));
        c.shutdown();
        System.out.println("consumed " + got.size());
    }

    private void online(String topic, String group, String how) throws Exception {
        DefaultMQPushConsumer c = consumer(topic, group);
        if (how.equals("orderly")) {
            c.registerMessageListener(new Received().succeedingInOrder());
        } else {
            c.registerMessageListener(new Received().succeeding());
        }
        if (how.equals("broadcast")) {
            OnlyHere.broadcasting(c);
        }
        c.start();
        online.put(group, c);
        System.out.println("online " + c.buildMQClientId());
    }

    private DefaultMQPushConsumer consumer(String topic, String group) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(namesrv);
        c.setInstanceName(group);
        c.setHeartbeatBrokerInterval(2000);
        c.setPollNameServerInterval(1000); // a group's retry topic comes when its first consumer does
        c.setPersistConsumerOffsetInterval(500);
        c.setConsumeThreadMin(2);
        c.setConsumeThreadMax(2);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(topic, "*");
        return c;
    }

    private void transact(String topic, String keys, String state) throws Exception {
        if (transactions == null) {
            transactions = new TransactionMQProducer("G-admin-transactions");
            transactions.setNamesrvAddr(namesrv);
            transactions.setInstanceName("transactions");
            transactions.setSendMsgTimeout(10000);
            transactions.setTransactionListener(new TransactionListener() {
                @Override public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
                    return (LocalTransactionState) arg;
                }

                @Override public LocalTransactionState checkLocalTransaction(MessageExt m) {
                    return LocalTransactionState.UNKNOW;
                }
            });
            transactions.start();
        }
        LocalTransactionState s = state.equals("committed") ? LocalTransactionState.COMMIT_MESSAGE
            : state.equals("rolledback") ? LocalTransactionState.ROLLBACK_MESSAGE : LocalTransactionState.UNKNOW;
        Message m = new Message(topic, "TagTxn", keys, ("transaction " + state).getBytes(StandardCharsets.UTF_8));
        System.out.println(transactions.sendMessageInTransaction(m, s).getMsgId());
    }
}
