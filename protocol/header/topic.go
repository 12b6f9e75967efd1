package header

import "rocketd/protocol"

// CreateTopicRequest is the header of requests UPDATE_AND_CREATE_TOPIC.
type CreateTopicRequest struct {
	Topic           string
	DefaultTopic    string // not used by the broker
	ReadQueueNums   int32  `rmq:",required"`
	WriteQueueNums  int32  `rmq:",required"`
	Perm            int32  `rmq:",required"`
	TopicFilterType string `rmq:",required"` // SINGLE_TAG or MULTI_TAG; checkFields() rejects any other value
	TopicSysFlag    protocol.Optional[int32]
	Order           bool             // NOT saved by the broker (order comes from KV config ORDER_TOPIC_CONFIG)
	Attributes      string           // of 5.x: changes of attributes, "+message.type=FIFO,…"
	Missing         protocol.Missing // the topic is checked first
}

// DeleteTopicRequest is the header of requests DELETE_TOPIC_IN_BROKER.
type DeleteTopicRequest struct {
	Topic string
}

// GetTopicStatsInfoRequest is the header of requests GET_TOPIC_STATS_INFO.
type GetTopicStatsInfoRequest struct {
	Topic string `rmq:",required"`
}

// DeleteTopicFromNamesrvRequest is the header of requests DELETE_TOPIC_IN_NAMESRV.
type DeleteTopicFromNamesrvRequest struct {
	Topic       string
	ClusterName string
}

// GetTopicsByClusterRequest is the header of requests GET_TOPICS_BY_CLUSTER.
type GetTopicsByClusterRequest struct {
	Cluster string
}

// GetTopicConfigRequest is the header of requests GET_TOPIC_CONFIG (5.x). Its lo and bname are not used by the server.
type GetTopicConfigRequest struct {
	Topic string `rmq:",required"`
}
