// Package header is the typed ext-field headers of requests and answers: plain structs, bound to the wire by
// protocol.Plan. Fields and types: spec of the 4.9.8 headers. A field tagged required is one whose absence
// ends in an error of the official server; the answer is then SYSTEM_ERROR with a remark naming the field.
package header

import "rocketd/protocol"

// SendMessageRequest is the header of requests SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE.
// The one-letter spellings are those of SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE.
type SendMessageRequest struct {
	ProducerGroup         string                   `rmq:",a"`
	Topic                 string                   `rmq:",b"`
	DefaultTopic          string                   `rmq:",c"`          // template topic for auto create, Java client sends TBW102
	DefaultTopicQueueNums int32                    `rmq:",d"`          // Java client default 4; broker caps it at the template topic's write queues
	QueueId               int32                    `rmq:",e,required"` // < 0 means broker picks a random write queue
	SysFlag               int32                    `rmq:",f,required"`
	BornTimestamp         int64                    `rmq:",g,required"`
	Flag                  int32                    `rmq:",h,required"`
	Properties            string                   `rmq:",i"` // name \u0001 value \u0002 ... text, see message-format.md
	ReconsumeTimes        protocol.Optional[int32] `rmq:",j"`
	UnitMode              bool                     `rmq:",k"`
	Batch                 bool                     `rmq:",m"`
	MaxReconsumeTimes     protocol.Optional[int32] `rmq:",l"`      // honoured only when request version >= 121 (V3_4_9)
	BrokerName            string                   `rmq:"bname,n"` // the target broker name that 4.9.8 clients add; not used by the server
	Missing               protocol.Missing         // the topic is checked first
}

// SendMessageResponse is the header of answers to SEND_BATCH_MESSAGE, SEND_MESSAGE, SEND_MESSAGE_V2, SEND_REPLY_MESSAGE, SEND_REPLY_MESSAGE_V2.
type SendMessageResponse struct {
	MsgId         string // offsetMsgId; comma separated list for a batch; "0" for a reply not stored
	QueueId       int32
	QueueOffset   int64
	TransactionId string // never set by the 4.9.8 broker
	RecallHandle  string // of a timer message, as 5.x; see message.RecallHandle
}

// ConsumerSendMsgBackRequest is the header of requests CONSUMER_SEND_MSG_BACK.
type ConsumerSendMsgBackRequest struct {
	Offset            int64  `rmq:",required"` // COMMIT LOG offset of the original message, not the queue offset
	Group             string `rmq:",required"`
	DelayLevel        int32  `rmq:",required"` // 0 = broker chooses 3+reconsumeTimes; <0 = straight to DLQ; >0 = that level
	OriginMsgId       string // only used for stats/trace hook
	OriginTopic       string
	UnitMode          bool
	MaxReconsumeTimes protocol.Optional[int32] // overrides group retryMaxTimes when request version >= 121 (V3_4_9)
	BrokerName        string                   `rmq:"bname"` // the target broker name that 4.9.8 clients add; not used by the server
}

// ReplyMessageRequest is the header of requests PUSH_REPLY_MESSAGE_TO_CLIENT.
type ReplyMessageRequest struct {
	ProducerGroup         string `rmq:",required"`
	Topic                 string `rmq:",required"`
	DefaultTopic          string `rmq:",required"`
	DefaultTopicQueueNums int32  `rmq:",required"`
	QueueId               int32  `rmq:",required"`
	SysFlag               int32  `rmq:",required"`
	BornTimestamp         int64  `rmq:",required"`
	Flag                  int32  `rmq:",required"`
	Properties            string
	ReconsumeTimes        protocol.Optional[int32]
	UnitMode              bool
	BornHost              string `rmq:",required"` // "ip:port" text
	StoreHost             string `rmq:",required"` // "ip:port" text
	StoreTimestamp        int64  `rmq:",required"`
}
