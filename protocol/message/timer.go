package message

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
)

// TimerCode is the tagsCode that the entry of a message in TopicTimer has in its queue: when the message is due (ms since
// 1970), and minus that when it recalls another one. 0: the properties text is not that of a timer message. The entries are
// thereby the whole index of what waits. A time is always more than a hash, which is what an official broker that has
// made the queue again has put there instead; see IsTimerCode.
func TimerCode(properties string) int64 {
	text, ok := Property(properties, PropertyTimerOutMs)
	if !ok {
		return 0
	}
	due, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !IsTimerCode(due) || due < 0 {
		return 0
	}
	if _, recall := Property(properties, PropertyTimerDelUniqKey); recall {
		return -due
	}
	return due
}

// IsTimerCode tells whether the tagsCode of an entry is one of TimerCode, and not the Java hash of a tag.
func IsTimerCode(tagsCode int64) bool {
	return tagsCode > math.MaxInt32 || tagsCode < math.MinInt32 && tagsCode != math.MinInt64
}

// RecallHandle is what a producer is given with the answer to the send of a timer message, to recall it by
// (RecallMessageHandle of 5.3.3).
type RecallHandle struct {
	Topic      string
	BrokerName string
	Timestamp  string // a ms after the message is due, as the official one
	UniqKey    string
}

// recallVersion is the only version that there is.
const recallVersion = "v1"

// String is the handle as it is on the wire: base64 for addresses, padded, of its parts with spaces between them.
func (h RecallHandle) String() string {
	text := strings.Join([]string{recallVersion, h.Topic, h.BrokerName, h.Timestamp, h.UniqKey}, " ")
	return base64.URLEncoding.EncodeToString([]byte(text))
}

// ParseRecallHandle reads a handle, as RecallMessageHandle#decodeHandle of 5.3.3, with padding or without; false when it is none.
func ParseRecallHandle(text string) (RecallHandle, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return RecallHandle{}, false
	}
	parts := strings.Split(strings.TrimRight(string(raw), " "), " ") // as String#split of Java: what is empty at the end does not count
	if len(parts) < 5 || parts[0] != recallVersion {
		return RecallHandle{}, false
	}
	return RecallHandle{parts[1], parts[2], parts[3], parts[4]}, true
}

// RecallKey is what PropertyTimerDelUniqKey says of a message: its topic and its unique key.
func RecallKey(topic, uniqKey string) string { return topic + "+" + uniqKey }
