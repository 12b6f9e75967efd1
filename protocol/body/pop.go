package body

import (
	"math/bits"

	"rocketd/compat"
)

// MessageRequestMode is how clients of a group take messages. "" is Java's null.
type MessageRequestMode string

// The modes.
const (
	ModePull MessageRequestMode = "PULL"
	ModePop  MessageRequestMode = "POP"
)

// UnmarshalJSON reads a name or an ordinal.
func (e *MessageRequestMode) UnmarshalJSON(b []byte) error {
	*e = MessageRequestMode(compat.ReadEnum(b, string(ModePull), string(ModePop)))
	return nil
}

// SetMessageRequestModeRequestBody is the body of SET_MESSAGE_REQUEST_MODE and an entry of messageRequestMode.json.
type SetMessageRequestModeRequestBody struct {
	ConsumerGroup    string             `json:",omitempty"`
	Mode             MessageRequestMode `json:",omitempty"`
	PopShareQueueNum int32              // members, beside its own, whose queues a member pops too; <= 0: all
	Topic            string             `json:",omitempty"`
}

// Defaults sets what a SetMessageRequestModeRequestBody is in Java when its text says nothing.
func (b *SetMessageRequestModeRequestBody) Defaults() {
	*b = SetMessageRequestModeRequestBody{Mode: ModePull}
}

// MessageRequestModes is messageRequestMode.json, and answers GET_ALL_MESSAGE_REQUEST_MODE: by topic and group.
type MessageRequestModes struct {
	MessageRequestModeMap map[string]map[string]*SetMessageRequestModeRequestBody
}

// QueryAssignmentRequestBody is the body of QUERY_ASSIGNMENT.
type QueryAssignmentRequestBody struct {
	ClientId      string       `json:",omitempty"`
	ConsumerGroup string       `json:",omitempty"`
	MessageModel  MessageModel `json:",omitempty"`
	StrategyName  string       `json:",omitempty"`
	Topic         string       `json:",omitempty"`
}

// MessageQueueAssignment is a queue that a client shall take messages from, and how.
type MessageQueueAssignment struct {
	MessageQueue MessageQueue
	Mode         MessageRequestMode `json:",omitempty"`
}

// QueryAssignmentResponseBody answers QUERY_ASSIGNMENT. Without the list a client keeps what it has; with an empty one
// it takes from no queue.
type QueryAssignmentResponseBody struct {
	MessageQueueAssignments *[]MessageQueueAssignment `json:",omitempty"`
}

// BatchAck is the acknowledgements of one checkpoint in BATCH_ACK_MESSAGE.
type BatchAck struct {
	ConsumerGroup string `json:"c"`
	Topic         string `json:"t"`
	Retry         string `json:"r"` // the receipt handle's flag: which topic it is in truth
	StartOffset   int64  `json:"so"`
	QueueId       int32  `json:"q"`
	ReviveQueueId int32  `json:"rq"`
	PopTime       int64  `json:"pt"`
	InvisibleTime int64  `json:"it"`
	BitSet        []byte `json:"b"` // a Java BitSet: bit i of byte i/8 is offset startOffset+i
}

// maxBitSet is how many bytes of a bit set are looked at: the messages of one pop lie within some thousand offsets.
const maxBitSet = 64 << 10

// Each calls f for each queue offset that is acknowledged, in order, until f returns false.
func (a *BatchAck) Each(f func(offset int64) bool) {
	for i, b := range a.BitSet[:min(len(a.BitSet), maxBitSet)] {
		for ; b != 0; b &= b - 1 {
			if !f(a.StartOffset + int64(i)*8 + int64(bits.TrailingZeros8(b))) {
				return
			}
		}
	}
}

// BatchAckMessageRequestBody is the body of BATCH_ACK_MESSAGE.
type BatchAckMessageRequestBody struct {
	BrokerName string `json:",omitempty"`
	Acks       []BatchAck
}
