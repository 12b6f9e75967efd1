package pop

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"rocketd/protocol/message"
)

// OrderRevive is the revive queue id that marks the handle of an orderly pop (KeyBuilder of 5.3.3).
const OrderRevive = 999

// Handle is a receipt handle: what a client needs to acknowledge a popped message. Its text is eight fields parted by
// single spaces (ExtraInfoUtil of 5.3.3), the last of which may be missing:
//
//	startOffset popTime invisibleTime reviveQid retryFlag brokerName queueId msgQueueOffset
type Handle struct {
	StartOffset   int64 // of the pop's batch in this queue
	PopTime       int64 // ms
	InvisibleTime int64 // ms
	ReviveQid     int32
}

// errHandle is what a handle with too few fields is answered with.
var errHandle = errors.New("the receipt handle (extraInfo) has too few fields")

// ParseHandle reads a receipt handle; only what the broker needs of it.
func ParseHandle(text string) (h Handle, err error) {
	fields := [4]int64{}
	for i := range fields {
		field, rest, ok := strings.Cut(text, " ")
		if !ok {
			return h, errHandle
		}
		bits := 64
		if i == 3 {
			bits = 32
		}
		if fields[i], err = strconv.ParseInt(field, 10, bits); err != nil {
			return h, fmt.Errorf("the receipt handle (extraInfo) has %q where a number belongs", field)
		}
		text = rest
	}
	return Handle{fields[0], fields[1], fields[2], int32(fields[3])}, nil
}

// Flags of a topic in handles and offset strings.
const (
	flagNormal  = '0'
	flagRetryV1 = '1'
	flagRetryV2 = '2'
)

// TopicFlag is how handles and offset strings tell what a topic is: itself, or the retry topic of group and topic.
func TopicFlag(topic string) byte {
	if !message.IsRetryTopic(topic) {
		return flagNormal
	}
	if strings.Contains(topic, "+") {
		return flagRetryV2
	}
	return flagRetryV1
}

// IsTopicFlag tells whether a text is such a flag.
func IsTopicFlag(flag string) bool {
	return flag == string(flagNormal) || flag == string(flagRetryV1) || flag == string(flagRetryV2)
}

// RetryTopic is the topic from which a group gets popped messages of topic again: V1 of 5.3.3. Where no topic can have that
// name, being longer than a record of 4.9 has room for or of other characters, it is one of our own, which no client sees:
// they make the long name of the receipt handle (OwnTopic).
func RetryTopic(group, topic string) string {
	name := message.RetryTopicPrefix + group + "_" + topic
	if message.ValidateTopic(name) != nil {
		sum := sha256.Sum256([]byte(name))
		return shortRetry + hex.EncodeToString(sum[:16])
	}
	return name
}

// shortRetry begins the retry topics whose official name can't be.
const shortRetry = message.RetryTopicPrefix + "ROCKETD_POP_"

// OwnTopic is the topic that a group's client means when it names one of a popped message.
func OwnTopic(topic, group string) string {
	if !message.IsRetryTopic(topic) || message.ValidateTopic(topic) == nil {
		return topic
	}
	if origin, ok := strings.CutPrefix(topic, message.RetryTopicPrefix+group+"_"); ok {
		return RetryTopic(group, origin)
	}
	return topic
}

// Origin is the topic that a popped message was sent to, whose properties are given.
func Origin(k Key, properties string) string {
	if origin, ok := strings.CutPrefix(k.Topic, message.RetryTopicPrefix+k.Group+"_"); ok {
		return origin
	}
	if strings.HasPrefix(k.Topic, shortRetry) {
		if origin, ok := message.Property(properties, message.PropertyRetryTopic); ok {
			return origin
		}
	}
	return k.Topic
}

// RealTopic is the topic that a batch acknowledgement means.
func RealTopic(topic, group, flag string) string {
	switch flag {
	case string(flagRetryV1):
		return RetryTopic(group, topic)
	case string(flagRetryV2):
		return message.RetryTopicPrefix + group + "+" + topic
	}
	return topic
}

// AppendHandle appends the receipt handle of one message.
func AppendHandle(dst []byte, h Handle, topic, brokerName string, queueId int32, offset int64) []byte {
	for _, n := range [...]int64{h.StartOffset, h.PopTime, h.InvisibleTime, int64(h.ReviveQid)} {
		dst = append(strconv.AppendInt(dst, n, 10), ' ')
	}
	dst = append(dst, TopicFlag(topic), ' ')
	dst = append(append(dst, brokerName...), ' ')
	dst = append(strconv.AppendInt(dst, int64(queueId), 10), ' ')
	return strconv.AppendInt(dst, offset, 10)
}

// appendSource appends the beginning of an entry of an offset string, `;` before it where needed.
func appendSource(dst []byte, topic string, queueId int32) []byte {
	if len(dst) > 0 {
		dst = append(dst, ';')
	}
	dst = append(dst, TopicFlag(topic), ' ')
	return append(strconv.AppendInt(dst, int64(queueId), 10), ' ')
}

// AppendStartOffset appends one queue's entry of startOffsetInfo.
func AppendStartOffset(dst []byte, topic string, queueId int32, offset int64) []byte {
	return strconv.AppendInt(appendSource(dst, topic, queueId), offset, 10)
}

// AppendMsgOffsets appends one queue's entry of msgOffsetInfo.
func AppendMsgOffsets(dst []byte, topic string, queueId int32, offsets []int64) []byte {
	dst = appendSource(dst, topic, queueId)
	for i, o := range offsets {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, o, 10)
	}
	return dst
}

// appendOffsetCount appends one message's entry of orderCountInfo.
func appendOffsetCount(dst []byte, topic string, queueId int32, offset int64, count int32) []byte {
	if len(dst) > 0 {
		dst = append(dst, ';')
	}
	dst = append(dst, TopicFlag(topic), ' ', 'q', 'o')
	dst = append(strconv.AppendInt(dst, int64(queueId), 10), '%')
	dst = append(strconv.AppendInt(dst, offset, 10), ' ')
	return strconv.AppendInt(dst, int64(count), 10)
}

// appendQueueCount appends one queue's entry of orderCountInfo.
func appendQueueCount(dst []byte, topic string, queueId int32, count int32) []byte {
	return strconv.AppendInt(appendSource(dst, topic, queueId), int64(count), 10)
}
