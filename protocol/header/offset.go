package header

// QueryConsumerOffsetRequest is the header of requests QUERY_CONSUMER_OFFSET.
type QueryConsumerOffsetRequest struct {
	ConsumerGroup string
	Topic         string `rmq:",required"`
	QueueId       int32  `rmq:",required"`
	BrokerName    string `rmq:"bname"` // the target broker name that 4.9.8 clients add; not used by the server
}

// QueryConsumerOffsetResponse is the header of answers to QUERY_CONSUMER_OFFSET.
type QueryConsumerOffsetResponse struct {
	Offset int64
}

// UpdateConsumerOffsetRequest is the header of requests UPDATE_CONSUMER_OFFSET.
type UpdateConsumerOffsetRequest struct {
	ConsumerGroup string
	Topic         string
	QueueId       int32  `rmq:",required"`
	CommitOffset  int64  `rmq:",required"`
	BrokerName    string `rmq:"bname"` // the target broker name that 4.9.8 clients add; not used by the server
}

// SearchOffsetRequest is the header of requests SEARCH_OFFSET_BY_TIMESTAMP.
type SearchOffsetRequest struct {
	Topic      string `rmq:",required"`
	QueueId    int32  `rmq:",required"`
	Timestamp  int64  `rmq:",required"`
	BrokerName string `rmq:"bname"` // the target broker name that 4.9.8 clients add; not used by the server
}

// SearchOffsetResponse is the header of answers to SEARCH_OFFSET_BY_TIMESTAMP.
type SearchOffsetResponse struct {
	Offset int64
}

// GetMaxOffsetRequest is the header of requests GET_MAX_OFFSET.
type GetMaxOffsetRequest struct {
	Topic      string `rmq:",required"`
	QueueId    int32  `rmq:",required"`
	BrokerName string `rmq:"bname"` // the target broker name that 4.9.8 clients add; not used by the server
}

// GetMaxOffsetResponse is the header of answers to GET_MAX_OFFSET.
type GetMaxOffsetResponse struct {
	Offset int64
}

// GetMinOffsetRequest is the header of requests GET_MIN_OFFSET.
type GetMinOffsetRequest struct {
	Topic      string `rmq:",required"`
	QueueId    int32  `rmq:",required"`
	BrokerName string `rmq:"bname"` // the target broker name that 4.9.8 clients add; not used by the server
}

// GetMinOffsetResponse is the header of answers to GET_MIN_OFFSET.
type GetMinOffsetResponse struct {
	Offset int64
}

// GetEarliestMsgStoretimeRequest is the header of requests GET_EARLIEST_MSG_STORETIME.
type GetEarliestMsgStoretimeRequest struct {
	Topic      string `rmq:",required"`
	QueueId    int32  `rmq:",required"`
	BrokerName string `rmq:"bname"` // the target broker name that 4.9.8 clients add; not used by the server
}

// GetEarliestMsgStoretimeResponse is the header of answers to GET_EARLIEST_MSG_STORETIME.
type GetEarliestMsgStoretimeResponse struct {
	Timestamp int64
}

// ResetOffsetRequest is the header of requests INVOKE_BROKER_TO_RESET_OFFSET, RESET_CONSUMER_CLIENT_OFFSET.
type ResetOffsetRequest struct {
	Topic     string `rmq:",required"`
	Group     string `rmq:",required"`
	Timestamp int64  // -1 = max offset (skip backlog)
	IsForce   bool   // wire name is isForce
}

// CloneGroupOffsetRequest is the header of requests CLONE_GROUP_OFFSET.
type CloneGroupOffsetRequest struct {
	SrcGroup  string `rmq:",required"`
	DestGroup string
	Topic     string // empty = every topic of srcGroup (but then cloneOffset is called with the empty topic: no effect)
	Offline   bool
}

// QueryCorrectionOffset is the header of requests QUERY_CORRECTION_OFFSET.
type QueryCorrectionOffset struct {
	FilterGroups string // comma separated
	CompareGroup string
	Topic        string `rmq:",required"`
}

// QueryConsumeTimeSpanRequest is the header of requests QUERY_CONSUME_TIME_SPAN.
type QueryConsumeTimeSpanRequest struct {
	Topic string `rmq:",required"`
	Group string
}
