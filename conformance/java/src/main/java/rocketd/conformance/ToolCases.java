package rocketd.conformance;

import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.refused;
import static rocketd.conformance.Check.that;

import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * What tools that nobody here wrote ask for, in their order and with their arguments, as their released sources show it:
 * rocketmq-exporter 0.0.2 (its MetricsCollectTask and what parses the broker's statistics; rocketmq-tools of 4.9) and
 * rocketmq-dashboard 1.0.0 and 2.1.0 (its services and collecting tasks; rocketmq-tools of 4.9 and 5.3). Each run plays
 * them with the tools of its own client.
 */
final class ToolCases {
    private static final int NOT_SUPPORTED = 3;

    private ToolCases() {
    }

    static void register() {
        Main.add("tool-exporter", ToolCases::exporter);
        Main.add("tool-dashboard-messages", ToolCases::dashboardMessages);
        Main.add("tool-dashboard-groups", ToolCases::dashboardGroups);
        Main.add("tool-dashboard-operations", ToolCases::dashboardOperations);
    }

    /** A topic on broker A with six messages, a producer, and a consumer that is online and has taken them all. */
    private static final class Scene {
        final Session s;
        final DefaultMQAdminExt admin;
        final String topic;
        final String group;
        final DefaultMQPushConsumer consumer;
        final SendResult[] sent = new SendResult[6];

        Scene(Session s) throws Exception {
            this.s = s;
            admin = s.servers.admin;
            topic = s.createTopic(2);
            group = s.group("c");
            s.knownGroup("c", topic);
            DefaultMQProducer p = s.producer();
            for (int i = 0; i < sent.length; i++) {
                sent[i] = p.send(Session.message(topic, "TagA", i), new MessageQueue(topic, Servers.A, i % 2));
            }
            Received got = new Received();
            consumer = s.consumer("c", "-c");
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener(got.succeeding());
            s.start(consumer);
            got.await(sent.length, 60);
            eventually(60, "the group's offsets", () -> {
                consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
                for (MessageQueue q : s.queues(topic, Servers.A)) {
                    if (s.committed("c", q) != 3) {
                        return false;
                    }
                }
                return true;
            });
        }

        String addr() {
            return s.servers.addr(Servers.A);
        }

        String clientId() {
            return consumer.buildMQClientId();
        }
    }

    /** What it gives, or null when the server does not know the code: 5.x tools ask for 351, which is not in 4.9. */
    private static <T> T ifKnown(Callable<T> c) throws Exception {
        try {
            return c.call();
        } catch (MQBrokerException e) {
            if (!OnlyHere.CLIENT5 || e.getResponseCode() != NOT_SUPPORTED) {
                throw e;
            }
        } catch (MQClientException e) {
            if (!OnlyHere.CLIENT5 || e.getResponseCode() != NOT_SUPPORTED) {
                throw e;
            }
        }
        return null;
    }

    static void exporter(Session s) throws Exception {
        Scene x = new Scene(s);
        DefaultMQAdminExt admin = x.admin;
        // Topic offsets.
        Set<String> topics = admin.fetchAllTopicList().getTopicList();
        that(topics.contains(x.topic) && topics.contains("%RETRY%" + x.group), "the topic and the group's retry topic in %s", topics);
        var stats = ifKnown(() -> admin.examineTopicStats(x.topic));
        if (stats != null) {
            equal(stats.getOffsetTable().size(), 2, "queues of the topic");
            stats.getOffsetTable().forEach((q, o) -> {
                equal(o.getMaxOffset() - o.getMinOffset(), 3L, "messages of %s", q);
                that(o.getLastUpdateTimestamp() > 0, "the time of the last message of %s", q);
            });
        }
        // Producers.
        eventually(30, "the producer in the table of all", () -> admin.getAllProducerInfo(x.addr()).getData().containsKey(s.group("p")));
        // Consumer offsets and clients.
        equal(new HashSet<>(admin.queryTopicConsumeByWho(x.topic).getGroupList()), Set.of(x.group), "groups of the topic");
        var online = admin.examineConsumerConnectionInfo(x.group);
        equal(online.getConnectionSet().size(), 1, "connections");
        equal(String.valueOf(online.getMessageModel()), "CLUSTERING", "message model");
        var connection = online.getConnectionSet().iterator().next();
        equal(connection.getClientId(), x.clientId(), "client id");
        that(connection.getClientAddr().startsWith("127.0.0.1:"), "an address, got %s", connection.getClientAddr());
        var running = admin.getConsumerRunningInfo(x.group, connection.getClientId(), false);
        equal(running.getMqTable().size(), 3, "queues of the client, with its retry queue");
        that(running.getStatusTable().containsKey(x.topic), "the topic's rates in %s", running.getStatusTable());
        var progress = ifKnown(() -> admin.examineConsumeStats(x.group, x.topic));
        if (progress != null) {
            equal(progress.computeTotalDiff(), 0L, "lag");
            that(progress.getConsumeTps() >= 0, "a rate");
            equal(progress.getOffsetTable().size(), 2, "queues of the group");
        }
        var tools = s.puller("tools");
        for (MessageQueue q : s.queues(x.topic, Servers.A)) {
            equal(tools.pull(q, "*", 3, 1).getPullStatus(), PullStatus.NO_NEW_MSG, "at the group's offset");
            equal(tools.pull(q, "*", 2, 1).getMsgFoundList().size(), 1, "the message before it");
        }
        // What the broker counted.
        var info = admin.examineBrokerClusterInfo();
        equal(info.getBrokerAddrTable().get(Servers.A).getBrokerAddrs().get(0L), x.addr(), "master");
        for (String[] item : new String[][] {
            {"TOPIC_PUT_NUMS", x.topic}, {"TOPIC_PUT_SIZE", x.topic}, {"GROUP_GET_NUMS", x.topic + "@" + x.group},
            {"GROUP_GET_SIZE", x.topic + "@" + x.group}, {"BROKER_PUT_NUMS", "DefaultCluster"}, {"BROKER_GET_NUMS", "DefaultCluster"},
        }) {
            var d = admin.viewBrokerStatsData(x.addr(), item[0], item[1]);
            that(d.getStatsMinute().getTps() >= 0 && d.getStatsHour().getSum() >= 0 && d.getStatsDay().getAvgpt() >= 0, "figures of %s", item[0]);
        }
        refused(1, "The stats <SNDBCK_PUT_NUMS> <" + x.topic + "@" + x.group + "> not exist",
            () -> admin.viewBrokerStatsData(x.addr(), "SNDBCK_PUT_NUMS", x.topic + "@" + x.group));
        runtime(admin.fetchBrokerRuntimeStats(x.addr()).getTable());
    }

    /** The broker's statistics as the exporter parses them; it drops all of them when one is missing or of another form. */
    private static void runtime(Map<String, String> table) {
        for (String key : List.of("msgPutTotalTodayNow", "sendThreadPoolQueueHeadWaitTimeMills", "queryThreadPoolQueueHeadWaitTimeMills",
            "msgGetTotalTodayNow", "queryThreadPoolQueueSize", "bootTimestamp", "msgPutTotalYesterdayMorning", "msgGetTotalYesterdayMorning",
            "pullThreadPoolQueueSize", "commitLogMinOffset", "pullThreadPoolQueueHeadWaitTimeMills", "dispatchMaxBuffer", "brokerVersion",
            "pageCacheLockTimeMills", "commitLogMaxOffset", "getMessageEntireTimeMax", "msgPutTotalTodayMorning", "putMessageTimesTotal",
            "msgGetTotalTodayMorning", "sendThreadPoolQueueSize", "startAcceptSendRequestTimeStamp", "putMessageEntireTimeMax",
            "earliestMessageTimeStamp", "remainTransientStoreBufferNumbs", "queryThreadPoolQueueCapacity", "dispatchBehindBytes",
            "putMessageSizeTotal", "sendThreadPoolQueueCapacity", "pullThreadPoolQueueCapacity")) {
            that(table.getOrDefault(key, "").matches("-?\\d+"), "a number as %s, got %s", key, table.get(key));
        }
        for (String key : List.of("consumeQueueDiskRatio", "commitLogDiskRatio", "putMessageAverageSize")) {
            Double.parseDouble(String.valueOf(table.get(key)));
        }
        for (String key : List.of("putTps", "getMissTps", "getTotalTps", "getFoundTps",
            table.containsKey("getTransferredTps") ? "getTransferredTps" : "getTransferedTps")) {
            String[] windows = String.valueOf(table.get(key)).trim().split(" +"); // of a young broker fewer than three
            that(windows.length <= 3, "up to three rates as %s, got %s", key, table.get(key));
            for (String w : windows) {
                that(w.isEmpty() || Double.parseDouble(w) >= 0, "a rate as %s, got %s", key, w);
            }
        }
        Double.parseDouble(table.get("remainHowManyDataToFlush").split(" ")[0]);
        for (String slot : table.get("putMessageDistributeTime").split(" ")) {
            if (!slot.isEmpty() && !slot.equals("null")) {
                Integer.parseInt(slot.split(":")[1]);
            }
        }
        that(table.get("commitLogDirCapacity").matches("Total : [0-9.]+ \\w+, Free : [0-9.]+ \\w+\\."), "sizes, got %s", table.get("commitLogDirCapacity"));
        that(table.get("runtime").matches("\\[ \\d+ days, \\d+ hours, \\d+ minutes, \\d+ seconds \\]"), "a duration, got %s", table.get("runtime"));
        that(table.get("brokerVersionDesc").startsWith("V4_9_"), "a version, got %s", table.get("brokerVersionDesc"));
        table.forEach((key, value) -> {
            if (key.startsWith("scheduleMessageOffset")) {
                that(value.matches("\\d+,\\d+"), "two offsets as %s, got %s", key, value);
            }
        });
    }

    static void dashboardMessages(Session s) throws Exception {
        Scene x = new Scene(s);
        DefaultMQAdminExt admin = x.admin;
        long now = System.currentTimeMillis();
        // By topic and time.
        var reader = s.puller("tools");
        int found = 0;
        for (MessageQueue q : reader.fetchSubscribeMessageQueues(x.topic)) {
            equal(reader.searchOffset(q, now - 3_600_000), 0L, "offset an hour ago");
            equal(reader.searchOffset(q, now + 3_600_000), 2L, "offset in an hour");
            found += reader.pull(q, "*", 0, 32).getMsgFoundList().size();
        }
        equal(found, x.sent.length, "messages of the topic");
        // By key, by either id.
        eventually(20, "the message by its key", () -> {
            try {
                return admin.queryMessage(x.topic, "key-3", 64, 0, System.currentTimeMillis() + 60_000).getMessageList().size() == 1;
            } catch (MQClientException e) {
                return false;
            }
        });
        equal(admin.viewMessage(x.topic, x.sent[3].getMsgId()).getQueueOffset(), x.sent[3].getQueueOffset(), "by its id");
        var message = admin.viewMessage(x.topic, x.sent[3].getOffsetMsgId());
        equal(Check.text(message.getBody()), "body 3", "by its offset id");
        equal(admin.getTopicClusterList(x.topic), Set.of("DefaultCluster"), "clusters of the topic");
        // Who has consumed it; consume it once more.
        var tracks = admin.messageTrackDetail(message);
        equal(tracks.size(), 1, "groups of the topic");
        equal(tracks.get(0).getConsumerGroup(), x.group, "group");
        if (!OnlyHere.CLIENT5) {
            equal(tracks.get(0).getTrackType().name(), "CONSUMED", "state");
        }
        for (String id : List.of(x.sent[3].getMsgId(), x.sent[3].getOffsetMsgId())) {
            var result = admin.consumeMessageDirectly(x.group, x.clientId(), x.topic, id);
            equal(result.getConsumeResult().name(), "CR_SUCCESS", "result");
        }
        refused(1, "not online", () -> admin.consumeMessageDirectly(x.group, "nobody", x.topic, x.sent[3].getOffsetMsgId()));
    }

    static void dashboardGroups(Session s) throws Exception {
        Scene x = new Scene(s);
        DefaultMQAdminExt admin = x.admin;
        OnlyHere.createGroup(s.servers, Servers.A, x.group, true);
        that(admin.getAllSubscriptionGroup(x.addr(), 30000).getSubscriptionGroupTable().containsKey(x.group), "the group in the table");
        that(admin.getUserSubscriptionGroup(x.addr(), 10000).getSubscriptionGroupTable().containsKey(x.group), "the group among the users'");
        var all = ifKnown(() -> admin.examineConsumeStats(x.group));
        if (all != null) {
            equal(all.computeTotalDiff(), 0L, "lag");
            that(all.getOffsetTable().keySet().containsAll(s.queues(x.topic, Servers.A)), "the topic's queues in %s", all.getOffsetTable());
        }
        equal(admin.examineConsumerConnectionInfo(x.group).getSubscriptionTable().get(x.topic).getSubString(), "*", "subscription");
        var running = admin.getConsumerRunningInfo(x.group, x.clientId(), true);
        that(running.getJstack().contains("Thread"), "stacks, got %.100s", running.getJstack());
        eventually(30, "the producer's connection", () -> {
            try {
                return admin.examineProducerConnectionInfo(s.group("p"), x.topic).getConnectionSet().size() == 1;
            } catch (MQBrokerException e) {
                return false; // it tells the broker of itself with its first heartbeat
            }
        });
        var spans = admin.queryConsumeTimeSpan(x.topic, x.group);
        equal(spans.size(), 2, "queues");
        that(spans.stream().allMatch(q -> q.getMinTimeStamp() > 0 && q.getMaxTimeStamp() >= q.getMinTimeStamp() && q.getDelayTime() == 0),
            "times and no delay of %s", spans);
        var status = admin.getConsumeStatus(x.topic, x.group, x.clientId());
        equal(status.keySet(), Set.of(x.clientId()), "clients");
        equal(status.get(x.clientId()).size(), 2, "queues of the client");
        // Back to the beginning, with the group online, and then gone.
        var reset = admin.resetOffsetByTimestamp(x.topic, x.group, 0, true);
        equal(new HashSet<>(reset.values()), Set.of(0L), "offsets after the reset");
        x.consumer.shutdown();
        eventually(60, "the group is offline", () -> {
            try {
                admin.examineConsumerConnectionInfo(x.group);
                return false;
            } catch (MQBrokerException e) {
                equal(e.getResponseCode(), 206, "code of a group that is offline");
                return true;
            }
        });
        refused(206, "not online", () -> admin.resetOffsetByTimestamp(x.topic, x.group, 0, true));
        refused(1, "not online", () -> admin.getConsumerRunningInfo(x.group, x.clientId(), false));
        MessageQueue q = s.queues(x.topic, Servers.A).get(0);
        admin.updateConsumeOffset(x.addr(), x.group, q, 1);
        equal(s.committed("c", q), 1L, "the offset as set");
        var back = ifKnown(() -> admin.resetOffsetByTimestampOld(x.group, x.topic, 0, true));
        if (back != null) {
            equal(back.size(), 2, "queues of the reset without its clients");
            equal(s.committed("c", q), 0L, "the offset after it");
        }
        var lag = admin.fetchConsumeStatsInBroker(x.addr(), false, 10000);
        that(lag.getConsumeStatsList().stream().anyMatch(m -> m.containsKey(x.group)), "the group among all of the broker");
        admin.cloneGroupOffset(x.group, s.group("clone"), x.topic, true);
        admin.deleteSubscriptionGroup(x.addr(), x.group, true);
        equal(s.committed("c", q), 0L, "the deleted group's offset, which is that of a new one");
    }

    static void dashboardOperations(Session s) throws Exception {
        DefaultMQAdminExt admin = s.servers.admin;
        String addr = s.servers.addr(Servers.A);
        String topic = s.createTopic(4);
        s.send(topic, 4);
        // Its pages of clusters, brokers and topics.
        var info = admin.examineBrokerClusterInfo();
        that(info.getClusterAddrTable().get("DefaultCluster").contains(Servers.A), "the broker in %s", info.getClusterAddrTable());
        runtime(admin.fetchBrokerRuntimeStats(addr).getTable());
        Properties conf = admin.getBrokerConfig(addr);
        equal(conf.getProperty("brokerName"), Servers.A, "brokerName");
        equal(admin.fetchTopicsByCLuster("DefaultCluster").getTopicList().contains(topic), true, "the topic in its cluster");
        equal(admin.getAllTopicConfig(addr, 10000).getTopicConfigTable().get(topic).getWriteQueueNums(), 4, "writeQueueNums");
        equal(admin.getUserTopicConfig(addr, false, 10000).getTopicConfigTable().containsKey(topic), true, "the topic among the users'");
        equal(admin.examineTopicRouteInfo(topic).getQueueDatas().size(), 1, "queue datas");
        equal(admin.queryTopicConsumeByWho(topic).getGroupList(), Collections.emptySet(), "groups");
        if (OnlyHere.CLIENT5) {
            var config = ifKnown(() -> admin.examineTopicConfig(addr, topic));
            that(config == null || config.getReadQueueNums() == 4 && config.getTopicName().equals(topic), "the topic's configuration, got %s", config);
        }
        MessageQueue q = s.queues(topic, Servers.A).get(0);
        eventually(20, "the message", () -> admin.maxOffset(q) == 1);
        equal(admin.minOffset(q), 0L, "minOffset");
        equal(admin.searchOffset(q, 0), 0L, "offset at the beginning of time");
        that(admin.earliestMsgStoreTime(q) > 0, "the first message's time");
        // Its buttons.
        Properties change = new Properties();
        change.setProperty("flushDelayOffsetInterval", "11000");
        admin.updateBrokerConfig(addr, change);
        equal(admin.getBrokerConfig(addr).getProperty("flushDelayOffsetInterval"), "11000", "the changed key");
        admin.createOrUpdateOrderConf(topic, Servers.A + ":4", true);
        equal(admin.getKVConfig("ORDER_TOPIC_CONFIG", topic), Servers.A + ":4", "order configuration");
        admin.deleteKvConfig("ORDER_TOPIC_CONFIG", topic);
        equal(admin.cleanExpiredConsumerQueueByAddr(addr), true, "cleaned queues");
        equal(admin.cleanUnusedTopicByAddr(addr), true, "cleaned topics");
        that(admin.getNameServerAddressList().contains(s.servers.namesrv), "the name server");
        admin.deleteTopicInBroker(Set.of(addr), topic);
        OnlyHere.deleteTopicAtNameServers(admin, Set.of(s.servers.namesrv.split(";")), topic);
        eventually(20, "no route", () -> {
            try {
                admin.examineTopicRouteInfo(topic);
                return false;
            } catch (MQClientException e) {
                return e.getResponseCode() == 17;
            }
        });
    }
}
