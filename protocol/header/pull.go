package header

// PullMessageRequest is the header of requests PULL_MESSAGE.
type PullMessageRequest struct {
	ConsumerGroup        string `rmq:",required"`
	Topic                string `rmq:",required"`
	QueueId              int32  `rmq:",required"` // must be 0 <= id < readQueueNums, else code 1
	QueueOffset          int64  `rmq:",required"`
	MaxMsgNums           int32  `rmq:",required"` // client default pullBatchSize 32
	SysFlag              int32  `rmq:",required"` // bits: 1 commitOffset, 2 suspend, 4 subscription inline, 8 class filter, 16 lite pull
	CommitOffset         int64  `rmq:",strict"`   // stored as the consumer offset only when sysFlag has COMMIT_OFFSET(1), on the first pass, and broker is not a slave
	SuspendTimeoutMillis int64  `rmq:",strict"`   // long-poll limit; Java client sends 15000; used only when sysFlag has SUSPEND(2)
	Subscription         string // tag expression or SQL; used only when sysFlag has SUBSCRIPTION(4)
	SubVersion           int64  `rmq:",strict"`
	ExpressionType       string // TAG or SQL92; absent/empty = TAG
	BrokerName           string `rmq:"bname"` // the target broker name that 4.9.8 clients add; not used by the server
}

// PullMessageResponse is the header of answers to PULL_MESSAGE.
type PullMessageResponse struct {
	SuggestWhichBrokerId int64 // always 0 while slaveReadEnable=false; else group.brokerId, or group.whichBrokerWhenConsumeSlowly when lag > accessMessageInMemoryMaxRatio% of RAM
	NextBeginOffset      int64
	MinOffset            int64
	MaxOffset            int64
}
