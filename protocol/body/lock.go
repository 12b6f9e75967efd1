package body

// LockBatchRequestBody is the body of LOCK_BATCH_MQ and UNLOCK_BATCH_MQ.
type LockBatchRequestBody struct {
	ClientId      string `json:",omitempty"`
	ConsumerGroup string `json:",omitempty"`
	MqSet         []MessageQueue
}

// LockBatchResponseBody answers LOCK_BATCH_MQ with the queues that the client now holds.
type LockBatchResponseBody struct {
	LockOKMQSet []MessageQueue
}
