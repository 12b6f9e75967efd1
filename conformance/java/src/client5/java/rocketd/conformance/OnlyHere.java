package rocketd.conformance;

import java.util.HashMap;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.header.QueryConsumerOffsetRequestHeader;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** What the cases need to say differently to a 5.x client. */
final class OnlyHere {
    static final boolean CLIENT5 = true;

    private OnlyHere() {
    }

    /** Adds the cases that only this client can run. */
    static void register() {
        TimerCases.register();
    }

    /** Reaches what the tool keeps to itself: its list of subcommands, to which main0 adds them all each time. */
    private static final class Tool extends MQAdminStartup {
        static void run(String[] args) {
            SUB_COMMANDS.clear();
            main0(args, null);
        }
    }

    /** Runs one mqadmin subcommand, which prints to System.out. */
    static void mqadmin(String[] args) {
        Tool.run(args);
    }

    static void broadcasting(DefaultMQPushConsumer c) {
        c.setMessageModel(MessageModel.BROADCASTING);
    }

    static void createTopic(DefaultMQAdminExt admin, String key, String topic, int queues) throws Exception {
        admin.createTopic(key, topic, queues, new HashMap<>());
    }

    static void deleteTopicAtNameServers(DefaultMQAdminExt admin, Set<String> servers, String topic) throws Exception {
        admin.deleteTopicInNameServer(servers, topic);
    }

    /** The group's offset in a queue as the broker has it; -1 when it has none. */
    static long committed(MQClientAPIImpl api, String addr, String group, MessageQueue q) throws Exception {
        QueryConsumerOffsetRequestHeader h = new QueryConsumerOffsetRequestHeader();
        h.setConsumerGroup(group);
        h.setTopic(q.getTopic());
        h.setQueueId(q.getQueueId());
        try {
            return api.queryConsumerOffset(addr, h, 10000);
        } catch (MQBrokerException e) {
            Check.equal(e.getResponseCode(), 22, "code of no offset");
            return -1;
        }
    }

    static void createGroup(Servers servers, String broker, String group, boolean consumeEnable) throws Exception {
        SubscriptionGroupConfig g = new SubscriptionGroupConfig();
        g.setGroupName(group);
        g.setConsumeEnable(consumeEnable);
        servers.admin.createAndUpdateSubscriptionGroupConfig(servers.addr(broker), g);
    }
}
