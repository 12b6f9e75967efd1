package body

// ConsumerOffsetSerializeWrapper is the consumer offsets by topic@group and queue id: consumerOffset.json and
// the answer to GET_ALL_CONSUMER_OFFSET.
type ConsumerOffsetSerializeWrapper struct {
	OffsetTable map[string]map[int32]int64
}

// LmqConsumerOffsetSerializeWrapper is ConsumerOffsetSerializeWrapper with enableLmq: lmqConsumerOffset.json. The offsets of
// groups of light message queues are kept by topic@group alone.
type LmqConsumerOffsetSerializeWrapper struct {
	LmqOffsetTable map[string]int64
	OffsetTable    map[string]map[int32]int64
}

// DelayOffsetSerializeWrapper is how far each delay level (1 to 18) is delivered: delayOffset.json and the answer
// to GET_ALL_DELAY_OFFSET.
type DelayOffsetSerializeWrapper struct {
	OffsetTable map[int32]int64
}

// OffsetWrapper is where a group stands in one queue.
type OffsetWrapper struct {
	BrokerOffset   int64 // the end of the queue
	ConsumerOffset int64
	LastTimestamp  int64  // ms, store time of the last message consumed; 0 = none
	PullOffset     *int64 `json:",omitempty"` // of 5.x: where the group pulls next; not in answers to 4.x
}

// ConsumeStats answers GET_CONSUME_STATS.
type ConsumeStats struct {
	ConsumeTps  float64
	OffsetTable map[MessageQueue]OffsetWrapper
}

// ConsumeStatsList answers GET_BROKER_CONSUME_STATS.
type ConsumeStatsList struct {
	BrokerAddr       string `json:",omitempty"`
	ConsumeStatsList []map[string][]ConsumeStats
	TotalDiff        int64
}

// QueryCorrectionOffsetBody answers QUERY_CORRECTION_OFFSET.
type QueryCorrectionOffsetBody struct {
	CorrectionOffsets map[int32]int64
}

// ResetOffsetBody is the body of RESET_CONSUMER_CLIENT_OFFSET and answers INVOKE_BROKER_TO_RESET_OFFSET.
type ResetOffsetBody struct {
	OffsetTable map[MessageQueue]int64
}

// MessageQueueForC is one queue of a ResetOffsetBodyForC.
type MessageQueueForC struct {
	BrokerName string
	Offset     int64
	QueueId    int32
	Topic      string
}

// ResetOffsetBodyForC is ResetOffsetBody for administrators whose language is CPP.
type ResetOffsetBodyForC struct {
	OffsetTable []MessageQueueForC
}

// GetConsumerStatusBody answers GET_CONSUMER_STATUS_FROM_CLIENT (the queue table) and
// INVOKE_BROKER_TO_GET_CONSUMER_STATUS (the consumer table).
type GetConsumerStatusBody struct {
	ConsumerTable     map[string]map[MessageQueue]int64
	MessageQueueTable map[MessageQueue]int64
}

// QueueTimeSpan is the store times of one queue's first and last message and of the last one consumed. The texts
// are the times as yyyy-MM-dd#HH:mm:ss:SSS; clients accept their absence.
type QueueTimeSpan struct {
	ConsumeTimeStamp    int64
	ConsumeTimeStampStr string `json:",omitempty"`
	DelayTime           int64
	MaxTimeStamp        int64
	MaxTimeStampStr     string `json:",omitempty"`
	MessageQueue        MessageQueue
	MinTimeStamp        int64
	MinTimeStampStr     string `json:",omitempty"`
}

// QueryConsumeTimeSpanBody answers QUERY_CONSUME_TIME_SPAN.
type QueryConsumeTimeSpanBody struct {
	ConsumeTimeSpanSet []QueueTimeSpan
}

// OffsetMovedEvent is the body of the messages in topic OFFSET_MOVED_EVENT.
type OffsetMovedEvent struct {
	ConsumerGroup string
	MessageQueue  MessageQueue
	OffsetNew     int64
	OffsetRequest int64
}
