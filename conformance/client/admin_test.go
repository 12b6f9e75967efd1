//go:build conformance

package client

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"

	"rocketd/conformance/wire"
)

// Every option of CreateTopic reaches the route, also when the topic is there already. That the client takes a refusal for a
// success, as it does not look at the code, is its own business: nothing may be created.
func TestAdminCreateTopicOptions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a := server.admin(t)
	create := func(topic string, opts ...admin.OptionCreate) {
		t.Helper()
		if err := a.CreateTopic(ctx, append(opts, admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(server.broker()))...); err != nil {
			t.Fatalf("create %s: %v", topic, err)
		}
	}
	expect := func(topic, want string) {
		t.Helper()
		eventually(t, "the route of "+topic+" has "+want, func() bool {
			return strings.Contains(string(server.ask(t, server.namesrv[0], wire.Request(105, "topic", topic)).Body), want)
		})
	}
	create("AdminOptions")
	expect("AdminOptions", `"perm":6,"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8`)
	create("AdminOptions", admin.WithReadQueueNums(6), admin.WithWriteQueueNums(3), admin.WithPerm(4), admin.WithTopicSysFlag(0),
		admin.WithTopicFilterType("MULTI_TAG"), admin.WithOrder(true))
	expect("AdminOptions", `"perm":4,"readQueueNums":6,"topicSysFlag":0,"writeQueueNums":3`)
	for _, topic := range []string{"Admin Options", strings.Repeat("A", 128), "SCHEDULE_TOPIC_XXXX"} {
		_ = a.CreateTopic(ctx, admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(server.broker()), admin.WithReadQueueNums(3))
		list, err := a.FetchAllTopicList(ctx)
		if err != nil || topic != "SCHEDULE_TOPIC_XXXX" && slices.Contains(list.TopicList, topic) {
			t.Errorf("%q was created; %v", topic, err)
		}
	}
	expect("SCHEDULE_TOPIC_XXXX", `"readQueueNums":18`)
}

// DeleteTopic finds the broker and the name servers by itself; a topic that is not there is no error.
func TestAdminDeleteTopicByRoute(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a := server.admin(t)
	topic := server.newTopic(t, "AdminDeleteByRoute", 2)
	if queues, err := a.FetchPublishMessageQueues(ctx, topic); err != nil || len(queues) != 2 {
		t.Errorf("%d queues, %v", len(queues), err)
	}
	if err := a.DeleteTopic(ctx, admin.WithTopicDelete(topic)); err != nil {
		t.Fatal(err)
	}
	if server.isRouted(t, topic) {
		t.Error("the topic is still routed")
	}
	if err := a.DeleteTopic(ctx, admin.WithTopicDelete("AdminNeverThere"), admin.WithBrokerAddrDelete(server.broker()),
		admin.WithNameSrvAddr(server.namesrv)); err != nil {
		t.Errorf("a topic that is not there: %v", err)
	}
}

// What the client shows of groups and clusters. Clusters are known to the newer version alone.
func TestAdminGroupsAndClusters(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a := server.admin(t)
	topic := server.newTopic(t, "AdminClusters", 1)
	f := server.ask(t, server.broker(), wire.Request(200).WithBody([]byte(`{"groupName":"G-AdminGroups","consumeEnable":false,`+
		`"consumeFromMinEnable":false,"consumeBroadcastEnable":false,"retryQueueNums":3,"retryMaxTimes":5,"brokerId":0,`+
		`"whichBrokerWhenConsumeSlowly":1,"notifyConsumerIdsChangedEnable":true}`)))
	if f.Code != 0 {
		t.Fatalf("%d %s", f.Code, f.Remark)
	}
	groups, err := a.GetAllSubscriptionGroup(ctx, server.broker(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	want := admin.SubscriptionGroupConfig{
		GroupName: "G-AdminGroups", RetryMaxTimes: 5, RetryQueueNums: 3, WhichBrokerWhenConsumeSlowly: 1, NotifyConsumerIdsChangedEnable: true,
	}
	if got := groups.SubscriptionGroupTable["G-AdminGroups"]; got != want {
		t.Errorf("group %+v", got)
	}
	if c, ok := a.(interface {
		FetchClusterList(topic string) ([]string, error)
	}); ok {
		clusters, err := c.FetchClusterList(topic)
		if err != nil || !slices.Equal(clusters, []string{server.Brokers[0].Cluster}) {
			t.Errorf("clusters %v, %v", clusters, err)
		}
	}
}
