package rocketd.conformance;

import static rocketd.conformance.Check.equal;
import static rocketd.conformance.Check.eventually;
import static rocketd.conformance.Check.refused;
import static rocketd.conformance.Check.that;

import java.util.Set;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** Administration by way of MQAdminExt: topics, routes, groups, KV configuration. */
final class TopicCases {
    private static final int TOPIC_NOT_EXIST = 17;

    private TopicCases() {
    }

    static void register() {
        Main.add("admin-create-topic", TopicCases::create);
        Main.add("admin-delete-topic", TopicCases::delete);
        Main.add("admin-queue-numbers", TopicCases::queueNumbers);
        Main.add("admin-topic-stats", TopicCases::stats);
        Main.add("admin-group", TopicCases::group);
        Main.add("admin-kv-config", TopicCases::kv);
        Main.add("admin-cluster", TopicCases::cluster);
    }

    static void create(Session s) throws Exception {
        DefaultMQAdminExt admin = s.servers.admin;
        String topic = s.topic("");
        // By the route of a topic that the wanted broker has: each broker has one of its own name.
        OnlyHere.createTopic(admin, Servers.A, topic, 3);
        s.awaitRoute(topic, Servers.A, 3, 6);
        that(admin.fetchAllTopicList().getTopicList().contains(topic), "the topic in the list");
        var route = admin.examineTopicRouteInfo(topic);
        equal(route.getOrderTopicConf(), null, "orderTopicConf");
        equal(route.getQueueDatas().size(), 1, "queue datas");
        equal(route.getQueueDatas().get(0).getReadQueueNums(), 3, "readQueueNums");
        equal(route.getBrokerDatas().size(), 1, "broker datas");
        equal(route.getBrokerDatas().get(0).getCluster(), "DefaultCluster", "cluster");
        equal(route.getBrokerDatas().get(0).getBrokerName(), Servers.A, "broker");
        equal(route.getBrokerDatas().get(0).getBrokerAddrs().get(0L), s.servers.addr(Servers.A), "address");
        DefaultMQProducer p = s.producer();
        equal(p.fetchPublishMessageQueues(topic).size(), 3, "queues to write");
        // More queues, and one more broker.
        s.createTopic("", 5, 4, 6, Servers.A, Servers.B);
        route = admin.examineTopicRouteInfo(topic);
        equal(route.getBrokerDatas().size(), 2, "brokers");
        equal(s.queues(topic, Servers.A).size(), 5, "queues to read");
    }

    static void delete(Session s) throws Exception {
        DefaultMQAdminExt admin = s.servers.admin;
        String topic = s.createTopic("", 2, 2, 6, Servers.B);
        s.send(topic, 4);
        // The official broker may crash (SIGSEGV) when a topic is deleted whose messages are just being dispatched.
        s.readAll(topic, 4);
        admin.deleteTopicInBroker(Set.of(s.servers.addr(Servers.B)), topic);
        OnlyHere.deleteTopicAtNameServers(admin, Set.of(s.servers.namesrv.split(";")), topic);
        eventually(20, "no route", () -> {
            try {
                admin.examineTopicRouteInfo(topic);
                return false;
            } catch (MQClientException e) {
                return e.getResponseCode() == TOPIC_NOT_EXIST;
            }
        });
        that(!admin.fetchAllTopicList().getTopicList().contains(topic), "the topic gone from the list");
        DefaultMQProducer p = s.producer();
        String other = s.createTopic("-other", 1, 1, 6, Servers.B);
        p.send(Session.message(other, "TagA", 0));
        refused(TOPIC_NOT_EXIST, "topic[" + topic + "] not exist", () ->
            p.send(Session.message(topic, "TagA", 0), new MessageQueue(topic, Servers.B, 0)));
        // Deleting what is not there is no error.
        admin.deleteTopicInBroker(Set.of(s.servers.addr(Servers.B)), s.topic("-never"));
    }

    static void queueNumbers(Session s) throws Exception {
        String topic = s.createTopic("", 4, 2, 6, Servers.A);
        DefaultMQProducer p = s.producer();
        equal(p.fetchPublishMessageQueues(topic).size(), 2, "queues to write");
        equal(s.queues(topic, Servers.A).size(), 4, "queues to read");
        s.send(topic, 8);
        s.readQueue(s.queues(topic, Servers.A).get(1), 4);
        s.readQueue(s.queues(topic, Servers.A).get(3), 0);
        // A queue that can still be read though no longer be written keeps its messages.
        s.servers.admin.createAndUpdateTopicConfig(s.servers.addr(Servers.A), new TopicConfig(topic, 4, 1, 6));
        s.awaitRoute(topic, Servers.A, 1, 6);
        s.readAll(topic, 8);
    }

    static void stats(Session s) throws Exception {
        String topic = s.createTopic(2);
        s.send(topic, 6);
        MessageQueue q = s.queues(topic, Servers.A).get(0);
        long last = 0;
        for (var m : s.readQueue(q, 3)) {
            last = m.getStoreTimestamp();
        }
        if (OnlyHere.CLIENT5) {
            return; // it sends GET_TOPIC_CONFIG (351), which a 4.9 broker refuses
        }
        var table = s.servers.admin.examineTopicStats(topic).getOffsetTable();
        equal(table.size(), 2, "queues");
        equal(table.get(q).getMinOffset(), 0L, "minOffset");
        equal(table.get(q).getMaxOffset(), 3L, "maxOffset");
        equal(table.get(q).getLastUpdateTimestamp(), last, "lastUpdateTimestamp");
    }

    static void group(Session s) throws Exception {
        String topic = s.createTopic(1);
        s.send(topic, 3);
        OnlyHere.createGroup(s.servers, Servers.A, s.group("c"), true);
        MessageQueue q = s.queues(topic, Servers.A).get(0);
        var c = s.puller("c");
        c.updateConsumeOffset(q, 2);
        c.getOffsetStore().persist(q);
        eventually(20, "offset 2", () -> s.committed("c", q) == 2);
        // Statistics go by the route of the group's retry topic, which its heartbeat creates.
        s.awaitRoute("%RETRY%" + s.group("c"), Servers.A, 1, 6);
        if (OnlyHere.CLIENT5) {
            return; // GET_TOPIC_CONFIG (351) again
        }
        var stats = s.servers.admin.examineConsumeStats(s.group("c"));
        equal(stats.getOffsetTable().get(q).getBrokerOffset(), 3L, "brokerOffset");
        equal(stats.getOffsetTable().get(q).getConsumerOffset(), 2L, "consumerOffset");
        equal(stats.computeTotalDiff(), 1L, "lag");
        s.servers.admin.deleteSubscriptionGroup(s.servers.addr(Servers.A), s.group("c"));
    }

    static void kv(Session s) throws Exception {
        DefaultMQAdminExt admin = s.servers.admin;
        String space = s.topic("-space");
        refused(22, "No config item, Namespace: " + space + " Key: a", () -> admin.getKVConfig(space, "a"));
        admin.createAndUpdateKvConfig(space, "a", "1");
        admin.createAndUpdateKvConfig(space, "b", "two, \u6f22");
        admin.createAndUpdateKvConfig(space, "a", "3");
        equal(admin.getKVConfig(space, "a"), "3", "value");
        equal(admin.getKVListByNamespace(space).getTable(), java.util.Map.of("a", "3", "b", "two, \u6f22"), "all of the namespace");
        admin.deleteKvConfig(space, "a");
        refused(22, "No config item, Namespace: " + space + " Key: a", () -> admin.getKVConfig(space, "a"));
        equal(admin.getKVListByNamespace(space).getTable(), java.util.Map.of("b", "two, \u6f22"), "what is left");
    }

    static void cluster(Session s) throws Exception {
        var info = s.servers.admin.examineBrokerClusterInfo();
        that(info.getClusterAddrTable().get("DefaultCluster").containsAll(Set.of(Servers.A, Servers.B)), "both brokers, got %s",
            info.getClusterAddrTable());
        equal(info.getBrokerAddrTable().get(Servers.A).getBrokerAddrs().get(0L), s.servers.addr(Servers.A), "address");
        var stats = s.servers.admin.fetchBrokerRuntimeStats(s.servers.addr(Servers.A)).getTable();
        for (String key : new String[] {"bootTimestamp", "brokerVersion", "msgPutTotalTodayNow", "putTps", "commitLogMinOffset", "commitLogMaxOffset"}) {
            that(stats.containsKey(key), "%s in the broker's statistics", key);
        }
    }
}
