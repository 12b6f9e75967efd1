package message

import (
	"strconv"
	"strings"
	"unicode"
)

// Reserved topics (TopicValidator of 4.9.8).
const (
	TopicAutoCreateKey     = "TBW102" // the default topic that new topics copy
	TopicSchedule          = "SCHEDULE_TOPIC_XXXX"
	TopicTimer             = "rmq_sys_wheel_timer" // of 5.x: messages that wait for a time of their own
	TopicBenchmark         = "BenchmarkTest"
	TopicTransHalf         = "RMQ_SYS_TRANS_HALF_TOPIC"
	TopicTransOpHalf       = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
	TopicTransCheckMaxTime = "TRANS_CHECK_MAX_TIME_TOPIC"
	TopicTrace             = "RMQ_SYS_TRACE_TOPIC"
	TopicSelfTest          = "SELF_TEST_TOPIC"
	TopicOffsetMovedEvent  = "OFFSET_MOVED_EVENT"

	// TopicPopLog is our own: the records of popped messages (package broker/pop).
	TopicPopLog = "rmq_sys_ROCKETD_POP_LOG"
)

// Prefixes and endings of topic names.
const (
	SystemTopicPrefix = "rmq_sys_"
	RetryTopicPrefix  = "%RETRY%"
	DLQTopicPrefix    = "%DLQ%"
	LmqTopicPrefix    = "%LMQ%"
	replyTopicPostfix = "_REPLY_TOPIC"
)

// Reserved groups (MixAll of 4.9.8).
const (
	GroupTools               = "TOOLS_CONSUMER"
	GroupFilterServer        = "FILTERSRV_CONSUMER"
	GroupSelfTestConsumer    = "SELF_TEST_C_GROUP"
	GroupSelfTestProducer    = "SELF_TEST_P_GROUP"
	GroupOnsHTTPProxy        = "CID_ONS-HTTP-PROXY"
	GroupOnsAPIPull          = "CID_ONSAPI_PULL"
	GroupOnsAPIPermission    = "CID_ONSAPI_PERMISSION"
	GroupOnsAPIOwner         = "CID_ONSAPI_OWNER"
	GroupSystemTrans         = "CID_RMQ_SYS_TRANS"
	GroupClientInnerProducer = "CLIENT_INNER_PRODUCER"
	GroupDefaultProducer     = "DEFAULT_PRODUCER"
	GroupDefaultConsumer     = "DEFAULT_CONSUMER"
	GroupSchedule            = "SCHEDULE_CONSUMER"
	GroupMonitor             = "__MONITOR_CONSUMER"
	SystemGroupPrefix        = "CID_RMQ_SYS_"
)

// MaxTopicLength is the longest topic name, in characters (all of them ASCII).
const MaxTopicLength = 127

// MaxFolderName is the longest name of a queue's folder, in bytes: what file systems take. Light queues have no other bound.
const MaxFolderName = 255

// remark is an error whose text is an official remark, as it is.
type remark string

// Error implements error.
func (r remark) Error() string { return string(r) }

// Errors of ValidateTopic. Their texts are the official remarks, sent with SYSTEM_ERROR.
const (
	ErrTopicBlank   = remark("The specified topic is blank.")
	ErrTopicIllegal = remark("The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")
	ErrTopicTooLong = remark("The specified topic is longer than topic max length.")
)

// ValidateTopic checks a topic name, in the order of TopicValidator#validateTopic of 4.9.8. A name that
// passes is also safe as a directory name: it has neither a dot nor a slash.
func ValidateTopic(topic string) error {
	switch {
	case strings.TrimFunc(topic, unicode.IsSpace) == "":
		return ErrTopicBlank
	case !LegalName(topic):
		return ErrTopicIllegal
	case len(topic) > MaxTopicLength:
		return ErrTopicTooLong
	}
	return nil
}

// LegalName tells whether all characters of a topic or group name are of ^[%|a-zA-Z0-9_-]+$ (an empty one
// has none that is not). Rule of TopicValidator#isTopicOrGroupIllegal of 4.9.8.
func LegalName(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '%', c == '|', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// IsSystemTopic tells whether a topic belongs to the system, so that it may be neither created nor deleted by
// an administrator. A broker has more such topics of its own: its name, its cluster's name and the
// cluster's reply topic.
func IsSystemTopic(topic string) bool {
	switch topic {
	case TopicAutoCreateKey, TopicSchedule, TopicBenchmark, TopicTransHalf, TopicTrace, TopicTransOpHalf,
		TopicTransCheckMaxTime, TopicSelfTest, TopicOffsetMovedEvent:
		return true
	}
	return strings.HasPrefix(topic, SystemTopicPrefix)
}

// IsNotAllowedSendTopic tells whether clients may not send to a topic (TopicValidator of 4.9.8). The topic of
// timer messages is one of them here: what stands there goes to any topic; and so is that of popped messages.
func IsNotAllowedSendTopic(topic string) bool {
	switch topic {
	case TopicSchedule, TopicTimer, TopicTransHalf, TopicTransOpHalf, TopicTransCheckMaxTime, TopicSelfTest, TopicOffsetMovedEvent, TopicPopLog:
		return true
	}
	return false
}

// HoldsOthers tells whether a topic keeps messages of other topics for the broker's own use: delayed and timed ones, half messages,
// what belongs to these, and popped ones. Their real topic is in REAL_TOPIC.
func HoldsOthers(topic string) bool {
	switch topic {
	case TopicSchedule, TopicTimer, TopicTransHalf, TopicTransOpHalf, TopicTransCheckMaxTime, TopicPopLog:
		return true
	}
	return false
}

// OwnTopic is the topic that a message belongs to, wherever it waits until it can be there.
func OwnTopic(topic, properties string) string {
	if HoldsOthers(topic) {
		if own, ok := Property(properties, PropertyRealTopic); ok {
			return own
		}
	}
	return topic
}

// RealPlace is the topic and queue that a delayed, timed or half message is for, as its properties name them; false: they name none
// that a message can be in.
func RealPlace(properties string) (topic string, queueId int32, ok bool) {
	topic, _ = Property(properties, PropertyRealTopic)
	text, _ := Property(properties, PropertyRealQueueId)
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 || ValidateTopic(topic) != nil {
		return "", 0, false
	}
	return topic, int32(n), true
}

// IsReplyTopic tells whether a topic is some cluster's topic of replies, perhaps in a namespace.
func IsReplyTopic(topic string) bool { return strings.HasSuffix(topic, replyTopicPostfix) }

// RetryTopic is the topic from which a group gets messages again, DLQTopic where they end.
func RetryTopic(group string) string { return RetryTopicPrefix + group }

// DLQTopic is the dead-letter topic of a group.
func DLQTopic(group string) string { return DLQTopicPrefix + group }

// ReplyTopic is the topic in which a cluster keeps the replies of request-reply.
func ReplyTopic(cluster string) string { return cluster + replyTopicPostfix }

// IsRetryTopic tells whether a topic is some group's retry topic.
func IsRetryTopic(topic string) bool { return strings.HasPrefix(topic, RetryTopicPrefix) }

// IsDLQTopic tells whether a topic is some group's dead-letter topic.
func IsDLQTopic(topic string) bool { return strings.HasPrefix(topic, DLQTopicPrefix) }

// IsSystemGroup tells whether a consumer group is the system's: it is created even where groups are not
// created automatically (MixAll#isSysConsumerGroup of 4.9.8).
func IsSystemGroup(group string) bool { return strings.HasPrefix(group, SystemGroupPrefix) }
