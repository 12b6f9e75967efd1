package body

// TopicConfig is the configuration of one topic at one broker.
type TopicConfig struct {
	Attributes      map[string]string `json:",omitempty"` // of 5.x; never changed, only replaced
	TopicName       string
	ReadQueueNums   int32
	WriteQueueNums  int32
	Perm            int32
	TopicFilterType string // SINGLE_TAG or MULTI_TAG
	TopicSysFlag    int32
	Order           bool
}

// Defaults sets what a TopicConfig is in Java when its text says nothing.
func (c *TopicConfig) Defaults() {
	*c = TopicConfig{ReadQueueNums: 16, WriteQueueNums: 16, Perm: 6, TopicFilterType: "SINGLE_TAG"}
}

// TopicConfigAndQueueMapping answers GET_TOPIC_CONFIG (5.x). There is no mapping
// of static topics.
type TopicConfigAndQueueMapping struct {
	Attributes      map[string]string
	Order           bool
	Perm            int32
	ReadQueueNums   int32
	TopicFilterType string
	TopicName       string
	TopicSysFlag    int32
	WriteQueueNums  int32
}

// TopicConfigSerializeWrapper is the table of topics: topics.json, the answer to GET_ALL_TOPIC_CONFIG, and the
// body of REGISTER_BROKER from brokers before V3_0_11.
type TopicConfigSerializeWrapper struct {
	DataVersion      DataVersion
	TopicConfigTable map[string]*TopicConfig
}

// TopicOffset is where one queue begins and ends.
type TopicOffset struct {
	LastUpdateTimestamp int64 // ms, store time of the last message; 0 = none
	MaxOffset           int64
	MinOffset           int64
}

// TopicStatsTable answers GET_TOPIC_STATS_INFO.
type TopicStatsTable struct {
	OffsetTable map[MessageQueue]TopicOffset
}

// ConsumeQueueData is one entry of a consume queue as QUERY_CONSUME_QUEUE shows it.
type ConsumeQueueData struct {
	BitMap         string `json:",omitempty"`
	Eval           bool
	ExtendDataJson string `json:",omitempty"`
	Msg            string `json:",omitempty"`
	PhysicOffset   int64
	PhysicSize     int32
	TagsCode       int64
}

// QueryConsumeQueueResponseBody answers QUERY_CONSUME_QUEUE.
type QueryConsumeQueueResponseBody struct {
	FilterData       string `json:",omitempty"`
	MaxQueueIndex    int64
	MinQueueIndex    int64
	QueueData        []ConsumeQueueData
	SubscriptionData *SubscriptionData
}
