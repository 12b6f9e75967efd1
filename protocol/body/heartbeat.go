package body

import "rocketd/compat"

// ConsumeType is how a group consumes. "" is Java's null: a name that 4.9.8 does not know.
type ConsumeType string

// The consume types.
const (
	ConsumeActively  ConsumeType = "CONSUME_ACTIVELY"  // pull
	ConsumePassively ConsumeType = "CONSUME_PASSIVELY" // push
)

// UnmarshalJSON reads a name or an ordinal.
func (e *ConsumeType) UnmarshalJSON(b []byte) error {
	*e = ConsumeType(compat.ReadEnum(b, string(ConsumeActively), string(ConsumePassively)))
	return nil
}

// MessageModel is whether each message goes to one member of a group or to all. "" is Java's null.
type MessageModel string

// The message models.
const (
	Broadcasting MessageModel = "BROADCASTING"
	Clustering   MessageModel = "CLUSTERING"
)

// UnmarshalJSON reads a name or an ordinal.
func (e *MessageModel) UnmarshalJSON(b []byte) error {
	*e = MessageModel(compat.ReadEnum(b, string(Broadcasting), string(Clustering)))
	return nil
}

// ConsumeFromWhere is where a group without an offset begins. "" is Java's null.
type ConsumeFromWhere string

// The places to begin that are not deprecated.
const (
	ConsumeFromLastOffset  ConsumeFromWhere = "CONSUME_FROM_LAST_OFFSET"
	ConsumeFromFirstOffset ConsumeFromWhere = "CONSUME_FROM_FIRST_OFFSET"
	ConsumeFromTimestamp   ConsumeFromWhere = "CONSUME_FROM_TIMESTAMP"
)

// UnmarshalJSON reads a name or an ordinal.
func (e *ConsumeFromWhere) UnmarshalJSON(b []byte) error {
	*e = ConsumeFromWhere(compat.ReadEnum(b, string(ConsumeFromLastOffset), "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
		"CONSUME_FROM_MIN_OFFSET", "CONSUME_FROM_MAX_OFFSET", string(ConsumeFromFirstOffset), string(ConsumeFromTimestamp)))
	return nil
}

// SubscriptionData is what one group wants of one topic.
type SubscriptionData struct {
	ClassFilterMode bool
	CodeSet         []int32 // Java's hashCode of each tag
	ExpressionType  string  `json:",omitempty"` // TAG or SQL92
	SubString       string  `json:",omitempty"`
	SubVersion      int64   // ms at the client when it subscribed
	TagsSet         []string
	Topic           string `json:",omitempty"`
}

// Defaults sets what a SubscriptionData is in Java when its text says nothing, but for the version, which is
// the time in Java.
func (d *SubscriptionData) Defaults() { *d = SubscriptionData{ExpressionType: "TAG"} }

// ConsumerData is one consumer group of a heartbeat.
type ConsumerData struct {
	ConsumeFromWhere    ConsumeFromWhere `json:",omitempty"`
	ConsumeType         ConsumeType      `json:",omitempty"`
	GroupName           string           `json:",omitempty"`
	MessageModel        MessageModel     `json:",omitempty"`
	SubscriptionDataSet []SubscriptionData
	UnitMode            bool
}

// ProducerData is one producer group of a heartbeat.
type ProducerData struct {
	GroupName string `json:",omitempty"`
}

// HeartbeatData is the body of HEART_BEAT.
type HeartbeatData struct {
	ClientID        string `json:",omitempty"` // capital D on the wire too
	ConsumerDataSet []ConsumerData
	ProducerDataSet []ProducerData
}

// CheckClientRequestBody is the body of CHECK_CLIENT_CONFIG.
type CheckClientRequestBody struct {
	ClientId         string            `json:",omitempty"`
	Group            string            `json:",omitempty"`
	SubscriptionData *SubscriptionData // nil: not sent
}
