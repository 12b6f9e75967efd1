package topics

import (
	"strings"

	"rocketd/protocol/message"
)

// Names of topics that the server itself knows, as package message has them.
const (
	AutoCreate        = message.TopicAutoCreateKey // the template of auto-created topics
	SelfTest          = message.TopicSelfTest
	Benchmark         = message.TopicBenchmark
	OffsetMovedEvent  = message.TopicOffsetMovedEvent
	Schedule          = message.TopicSchedule
	Timer             = message.TopicTimer
	Trace             = message.TopicTrace
	TransHalf         = message.TopicTransHalf
	TransOpHalf       = message.TopicTransOpHalf
	TransCheckMaxTime = message.TopicTransCheckMaxTime
	SystemPrefix      = message.SystemTopicPrefix
	RetryPrefix       = message.RetryTopicPrefix
	DLQPrefix         = message.DLQTopicPrefix
	LmqPrefix         = message.LmqTopicPrefix // of light message queues
)

// MaxLength is the longest topic name in bytes, as TopicValidator of 4.9.8.
const MaxLength = message.MaxTopicLength

// MaxQueues is the most read or write queues that a topic may be given. 4.9.8 takes any number, and then builds
// answers and clients' tables of that size.
const MaxQueues = 65_535

// Permission bits of a topic or broker (PermName of 4.9.8).
const (
	PermInherit int32 = 1
	PermWrite   int32 = 2
	PermRead    int32 = 4
)

// TopicSysFlag bits.
const (
	FlagUnit    int32 = 1
	FlagUnitSub int32 = 2
)

// Refusals of Validate, in the official words: the remark of the answer.
const (
	ErrBlank   = message.ErrTopicBlank
	ErrIllegal = message.ErrTopicIllegal
	ErrTooLong = message.ErrTopicTooLong
)

// Validate tells whether topic may be a topic's name.
func Validate(topic string) error { return message.ValidateTopic(topic) }

// isFolder tells whether topic can be a folder of its own below the consume queues.
func isFolder(topic string) bool {
	return topic != "" && topic != "." && topic != ".." && !strings.ContainsAny(topic, "/\x00")
}

// IsLegal tells whether topic is not empty and has none but the characters that a topic's name may have. The topics
// of the table are legal, those of the broker's and the cluster's name perhaps aside; a retry topic may be longer than
// Validate allows.
func IsLegal(topic string) bool { return topic != "" && message.LegalName(topic) }

// SendForbidden tells whether clients may not send to topic (code 16), as TopicValidator#isNotAllowedSendTopic; nor to our
// own, where anything would be taken for the broker's word.
func SendForbidden(topic string) bool { return message.IsNotAllowedSendTopic(topic) }

// IsRetry tells whether topic is some group's retry topic.
func IsRetry(topic string) bool { return message.IsRetryTopic(topic) }

// IsDLQ tells whether topic is some group's dead-letter topic.
func IsDLQ(topic string) bool { return message.IsDLQTopic(topic) }

// RetryTopic is the retry topic of a consumer group.
func RetryTopic(group string) string { return message.RetryTopic(group) }

// DLQTopic is the dead-letter topic of a consumer group.
func DLQTopic(group string) string { return message.DLQTopic(group) }

// ReplyTopic is the topic of a cluster's replies.
func ReplyTopic(cluster string) string { return message.ReplyTopic(cluster) }

// Readable tells whether perm has the read bit.
func Readable(perm int32) bool { return perm&PermRead != 0 }

// Writeable tells whether perm has the write bit.
func Writeable(perm int32) bool { return perm&PermWrite != 0 }

// Inherited tells whether perm has the inherit bit: other topics may be made after this one.
func Inherited(perm int32) bool { return perm&PermInherit != 0 }
