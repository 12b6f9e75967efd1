package header

// PopMessageRequest is the header of requests POP_MESSAGE.
type PopMessageRequest struct {
	ConsumerGroup string `rmq:",required"`
	Topic         string `rmq:",required"`
	QueueId       int32  // -1: any queue of the topic
	MaxMsgNums    int32  // at most 32
	InvisibleTime int64  // ms until an unacknowledged message comes again
	PollTime      int64  // ms that the request may be held; 0: not at all
	BornTime      int64  // ms since 1970 at the client; 0: the broker's own time
	InitMode      int32  // where a new group begins: 0 at the first message, 1 at the last
	ExpType       string // as expressionType of a pull
	Exp           string // as subscription of a pull
	Order         bool   // in the order of the queue, the next batch only when this one is acknowledged
	AttemptId     string // the same for the repeats of one orderly pop
	BrokerName    string `rmq:"bname"` // not used by the server
}

// PopMessageResponse is the header of answers to POP_MESSAGE and PEEK_MESSAGE.
type PopMessageResponse struct {
	PopTime         int64
	InvisibleTime   int64
	ReviveQid       int32
	RestNum         int64  // messages left behind
	StartOffsetInfo string // this and the next two: broker/pop/handle.go writes their texts
	MsgOffsetInfo   string
	OrderCountInfo  string // of an orderly pop only
}

// AckMessageRequest is the header of requests ACK_MESSAGE.
type AckMessageRequest struct {
	ConsumerGroup string `rmq:",required"`
	Topic         string `rmq:",required"`
	QueueId       int32  `rmq:",required"`
	ExtraInfo     string `rmq:",required"` // the receipt handle
	Offset        int64  `rmq:",required"` // queue offset of the message
	BrokerName    string `rmq:"bname"`     // not used by the server
}

// ChangeInvisibleTimeRequest is the header of requests CHANGE_MESSAGE_INVISIBLETIME.
type ChangeInvisibleTimeRequest struct {
	ConsumerGroup string `rmq:",required"`
	Topic         string `rmq:",required"`
	QueueId       int32  `rmq:",required"`
	ExtraInfo     string `rmq:",required"` // the receipt handle
	Offset        int64  `rmq:",required"` // queue offset of the message
	InvisibleTime int64  `rmq:",required"` // ms from now
	BrokerName    string `rmq:"bname"`     // not used by the server
}

// ChangeInvisibleTimeResponse is the header of answers to CHANGE_MESSAGE_INVISIBLETIME: what replaces the values in
// the receipt handle.
type ChangeInvisibleTimeResponse struct {
	PopTime       int64
	InvisibleTime int64
	ReviveQid     int32
}

// NotificationRequest is the header of requests NOTIFICATION.
type NotificationRequest struct {
	ConsumerGroup string `rmq:",required"`
	Topic         string `rmq:",required"`
	QueueId       int32  // -1: any queue of the topic
	PollTime      int64  // ms that the request may be held
	BornTime      int64  // ms since 1970 at the client; 0: the broker's own time
	Order         bool
	AttemptId     string
	BrokerName    string `rmq:"bname"` // not used by the server
}

// NotificationResponse is the header of answers to NOTIFICATION.
type NotificationResponse struct {
	HasMsg      bool
	PollingFull bool
}

// PollingInfoRequest is the header of requests POLLING_INFO.
type PollingInfoRequest struct {
	ConsumerGroup string `rmq:",required"`
	Topic         string `rmq:",required"`
	QueueId       int32
	BrokerName    string `rmq:"bname"` // not used by the server
}

// PollingInfoResponse is the header of answers to POLLING_INFO.
type PollingInfoResponse struct {
	PollingNum int32
}

// PeekMessageRequest is the header of requests PEEK_MESSAGE.
type PeekMessageRequest struct {
	ConsumerGroup string `rmq:",required"`
	Topic         string `rmq:",required"`
	QueueId       int32  // -1: any queue of the topic
	MaxMsgNums    int32
	BrokerName    string `rmq:"bname"` // not used by the server
}
