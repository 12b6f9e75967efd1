package body

// SubscriptionGroupConfig is the configuration of one consumer group, and the body of
// UPDATE_AND_CREATE_SUBSCRIPTIONGROUP.
type SubscriptionGroupConfig struct {
	GroupName                      string
	ConsumeEnable                  bool
	ConsumeFromMinEnable           bool
	ConsumeBroadcastEnable         bool
	RetryQueueNums                 int32
	RetryMaxTimes                  int32
	BrokerId                       int64 // where consumers shall pull
	WhichBrokerWhenConsumeSlowly   int64
	NotifyConsumerIdsChangedEnable bool
}

// Defaults sets what a SubscriptionGroupConfig is in Java when its text says nothing.
func (c *SubscriptionGroupConfig) Defaults() {
	*c = SubscriptionGroupConfig{
		ConsumeEnable: true, ConsumeFromMinEnable: true, ConsumeBroadcastEnable: true, RetryQueueNums: 1, RetryMaxTimes: 16,
		WhichBrokerWhenConsumeSlowly: 1, NotifyConsumerIdsChangedEnable: true,
	}
}

// SubscriptionGroupWrapper is the table of groups: subscriptionGroup.json and the answer to
// GET_ALL_SUBSCRIPTIONGROUP_CONFIG.
type SubscriptionGroupWrapper struct {
	DataVersion            DataVersion
	SubscriptionGroupTable map[string]*SubscriptionGroupConfig
}

// GroupList answers QUERY_TOPIC_CONSUME_BY_WHO.
type GroupList struct {
	GroupList []string
}

// GetConsumerListByGroupResponseBody answers GET_CONSUMER_LIST_BY_GROUP.
type GetConsumerListByGroupResponseBody struct {
	ConsumerIdList []string
}

// ConsumeByWho is a body that 4.9.8 declares and never sends.
type ConsumeByWho struct {
	ConsumedGroup    []string
	NotConsumedGroup []string
	Offset           int64
	QueueId          int32
	Topic            string `json:",omitempty"`
}
