package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// States of a transaction in END_TRANSACTION.
const (
	Unknown  = 0
	Commit   = 8
	Rollback = 12
)

// HalfTopic and GivenUpTopic are where the half messages are, and those that nobody has ended.
const (
	HalfTopic    = "RMQ_SYS_TRANS_HALF_TOPIC"
	GivenUpTopic = "TRANS_CHECK_MAX_TIME_TOPIC"
)

// ProducerHeartbeat makes its connection a member of a producer group.
func ProducerHeartbeat(clientId, group string) *Frame {
	return Request(34).WithBody([]byte(`{"clientID":"` + clientId + `","consumerDataSet":[],"producerDataSet":[{"groupName":"` + group + `"}]}`))
}

// Half is the send of a half message as the Java client makes it, with more properties.
func Half(topic string, queueId int, group, body string, properties ...string) *Frame {
	id := fmt.Sprintf("%032X", body)
	all := Properties(append([]string{"TRAN_MSG", "true", "PGROUP", group, "UNIQ_KEY", id[:32], "WAIT", "true"}, properties...)...)
	return Request(310, "a", group, "b", topic, "c", "TBW102", "d", "4", "e", strconv.Itoa(queueId), "f", "4",
		"g", strconv.FormatInt(time.Now().UnixMilli(), 10), "h", "5", "i", all, "j", "0", "k", "false", "m", "false").WithBody([]byte(body))
}

// End ends the transaction of a half message that a send's answer or a check names. The broker answers it unless the state
// is Unknown.
func End(group, tranStateTableOffset, commitLogOffset string, state int, fromCheck bool) *Frame {
	return Request(37, "producerGroup", group, "tranStateTableOffset", tranStateTableOffset, "commitLogOffset", commitLogOffset,
		"commitOrRollback", strconv.Itoa(state), "fromTransactionCheck", strconv.FormatBool(fromCheck), "msgId", "M", "transactionId", "M")
}

// EndSent ends the transaction of a half message by the answer to its send.
func EndSent(group string, answer *Frame, state int) *Frame {
	id := answer.Ext["msgId"]
	at, err := strconv.ParseInt(id[max(0, len(id)-16):], 16, 64)
	if err != nil {
		at = -1
	}
	return End(group, answer.Ext["queueOffset"], strconv.FormatInt(at, 10), state, false)
}

// EndChecked ends the transaction that a check asks about.
func EndChecked(group string, check *Frame, state int) *Frame {
	return End(group, check.Ext["tranStateTableOffset"], check.Ext["commitLogOffset"], state, true)
}

// Checks are what the broker has asked so far about half messages whose body begins with prefix.
func (c *Conn) Checks(prefix string) (checks []*Frame, messages []*Message, err error) {
	for _, f := range c.Requests() {
		if f.Code != 39 {
			continue
		}
		ms, err := Messages(f.Body)
		if err != nil || len(ms) != 1 {
			return nil, nil, fmt.Errorf("a check with %d messages: %w", len(ms), err)
		}
		if strings.HasPrefix(string(ms[0].Body), prefix) {
			checks, messages = append(checks, f), append(messages, ms[0])
		}
	}
	return checks, messages, nil
}
