package header

// QueryMessageRequest is the header of requests QUERY_MESSAGE.
type QueryMessageRequest struct {
	Topic          string
	Key            string // a KEYS token or the UNIQ_KEY
	MaxNum         int32  `rmq:",required"` // server caps at maxMsgsNumBatch (64)
	BeginTimestamp int64  `rmq:",required"`
	EndTimestamp   int64  `rmq:",required"`
}

// QueryMessageResponse is the header of answers to QUERY_MESSAGE.
type QueryMessageResponse struct {
	IndexLastUpdateTimestamp int64 // 0 when nothing found
	IndexLastUpdatePhyoffset int64
}

// ViewMessageRequest is the header of requests VIEW_MESSAGE_BY_ID.
type ViewMessageRequest struct {
	Offset int64 `rmq:",required"` // commit-log offset
}

// QueryConsumeQueueRequest is the header of requests QUERY_CONSUME_QUEUE.
type QueryConsumeQueueRequest struct {
	Topic         string
	QueueId       int32
	Index         int64
	Count         int32 // number of 20-byte entries
	ConsumerGroup string
}
