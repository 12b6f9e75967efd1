package header

// GetConsumerListByGroupRequest is the header of requests GET_CONSUMER_LIST_BY_GROUP.
type GetConsumerListByGroupRequest struct {
	ConsumerGroup string `rmq:",required"`
}

// NotifyConsumerIdsChangedRequest is the header of requests NOTIFY_CONSUMER_IDS_CHANGED.
type NotifyConsumerIdsChangedRequest struct {
	ConsumerGroup string `rmq:",required"` // body none; oneway
}

// UnregisterClientRequest is the header of requests UNREGISTER_CLIENT.
type UnregisterClientRequest struct {
	ClientID      string // capital D: clientID
	ProducerGroup string
	ConsumerGroup string
}

// GetConsumerConnectionListRequest is the header of requests GET_CONSUMER_CONNECTION_LIST.
type GetConsumerConnectionListRequest struct {
	ConsumerGroup string `rmq:",required"`
}

// GetProducerConnectionListRequest is the header of requests GET_PRODUCER_CONNECTION_LIST.
type GetProducerConnectionListRequest struct {
	ProducerGroup string `rmq:",required"`
}

// GetConsumerRunningInfoRequest is the header of requests GET_CONSUMER_RUNNING_INFO.
type GetConsumerRunningInfoRequest struct {
	ConsumerGroup string `rmq:",required"`
	ClientId      string `rmq:",required"`
	JstackEnable  bool
}

// GetConsumerStatusRequest is the header of requests GET_CONSUMER_STATUS_FROM_CLIENT, INVOKE_BROKER_TO_GET_CONSUMER_STATUS.
type GetConsumerStatusRequest struct {
	Topic      string
	Group      string `rmq:",required"`
	ClientAddr string // a clientId in practice; empty = all clients
}

// ConsumeMessageDirectlyResultRequest is the header of requests CONSUME_MESSAGE_DIRECTLY.
type ConsumeMessageDirectlyResultRequest struct {
	ConsumerGroup string `rmq:",required"`
	ClientId      string
	MsgId         string
	BrokerName    string // added by the broker when forwarding
}

// GetConsumeStatsRequest is the header of requests GET_CONSUME_STATS.
type GetConsumeStatsRequest struct {
	ConsumerGroup string `rmq:",required"`
	Topic         string
}

// GetConsumeStatsInBroker is the header of requests GET_BROKER_CONSUME_STATS.
type GetConsumeStatsInBroker struct {
	IsOrder bool // wire name is isOrder
}

// QueryTopicConsumeByWhoRequest is the header of requests QUERY_TOPIC_CONSUME_BY_WHO.
type QueryTopicConsumeByWhoRequest struct {
	Topic string `rmq:",required"`
}

// DeleteSubscriptionGroupRequest is the header of requests DELETE_SUBSCRIPTIONGROUP.
type DeleteSubscriptionGroupRequest struct {
	GroupName    string `rmq:",required"`
	RemoveOffset bool   // added in 4.9.x; false when absent
}
