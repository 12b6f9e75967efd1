package header

// CheckTransactionStateRequest is the header of requests CHECK_TRANSACTION_STATE.
type CheckTransactionStateRequest struct {
	TranStateTableOffset int64  `rmq:",required"` // queue offset of the half message to check (the copy just re-written)
	CommitLogOffset      int64  `rmq:",required"`
	MsgId                string // UNIQ_KEY property of the half message
	TransactionId        string // same as msgId
	OffsetMsgId          string // msgId (host+offset) of the re-written half message
	BrokerName           string `rmq:"bname"` // the target broker name that 4.9.8 clients add; not used by the server
}

// EndTransactionRequest is the header of requests END_TRANSACTION.
type EndTransactionRequest struct {
	ProducerGroup        string
	TranStateTableOffset int64 `rmq:",required"` // QUEUE offset of the half message (SendResult.queueOffset)
	CommitLogOffset      int64 `rmq:",required"` // commit-log offset decoded from offsetMsgId
	CommitOrRollback     int32 `rmq:",required"` // 0 unknown, 8 commit, 12 rollback
	FromTransactionCheck bool  // true when answering code 39; Java default false when absent
	MsgId                string
	TransactionId        string
	BrokerName           string `rmq:"bname"` // the target broker name that 4.9.8 clients add; not used by the server
}

// ResumeCheckHalfMessageRequest is the header of requests RESUME_CHECK_HALF_MESSAGE.
type ResumeCheckHalfMessageRequest struct {
	MsgId string
}
