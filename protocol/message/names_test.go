package message

import (
	"net/netip"
	"strings"
	"testing"
)

func TestOffsetMsgId(t *testing.T) {
	for _, c := range []struct {
		host   string
		offset int64
		want   string
	}{
		{"127.0.0.1:39511", 0, "7F00000100009A570000000000000000"},
		{"127.0.0.1:33011", 73733, "7F000001000080F30000000000012005"},
		{"[fd00::26c]:10911", 1 << 40, "FD00000000000000000000000000026C00002A9F0000010000000000"},
	} {
		host := netip.MustParseAddrPort(c.host)
		if got := OffsetMsgId(host, c.offset); got != c.want {
			t.Errorf("OffsetMsgId(%s, %d) = %s, want %s", c.host, c.offset, got, c.want)
		}
		for _, id := range []string{c.want, strings.ToLower(c.want)} {
			if h, o, err := ParseOffsetMsgId(id); h != host || o != c.offset || err != nil {
				t.Errorf("ParseOffsetMsgId(%s) = %v, %d, %v", id, h, o, err)
			}
		}
	}
	for _, id := range []string{"", "7F", strings.Repeat("0", 31), strings.Repeat("0", 40), strings.Repeat("g", 32), "7F000001000180F30000000000012005"} {
		if _, _, err := ParseOffsetMsgId(id); err == nil {
			t.Errorf("ParseOffsetMsgId(%q) accepts", id)
		}
	}
}

func TestValidateTopic(t *testing.T) {
	for _, c := range []struct {
		topic string
		want  error
	}{
		{"TopicA", nil}, {"%RETRY%g-1_x|y", nil}, {strings.Repeat("a", 127), nil},
		{"", ErrTopicBlank}, {" \t\n", ErrTopicBlank},
		{"a.b", ErrTopicIllegal}, {"a/b", ErrTopicIllegal}, {"a b", ErrTopicIllegal}, {"ä", ErrTopicIllegal}, {"..", ErrTopicIllegal},
		{strings.Repeat("a", 128), ErrTopicTooLong}, {strings.Repeat(".", 128), ErrTopicIllegal},
	} {
		if err := ValidateTopic(c.topic); err != c.want {
			t.Errorf("ValidateTopic(%q) = %v, want %v", c.topic, err, c.want)
		}
	}
}

func TestReservedTopics(t *testing.T) {
	for _, c := range []struct {
		topic            string
		system, noSender bool
	}{
		{"TBW102", true, false}, {"SELF_TEST_TOPIC", true, true}, {"BenchmarkTest", true, false}, {"OFFSET_MOVED_EVENT", true, true},
		{"SCHEDULE_TOPIC_XXXX", true, true}, {"RMQ_SYS_TRACE_TOPIC", true, false}, {"RMQ_SYS_TRANS_HALF_TOPIC", true, true},
		{"RMQ_SYS_TRANS_OP_HALF_TOPIC", true, true}, {"TRANS_CHECK_MAX_TIME_TOPIC", true, true}, {"rmq_sys_x", true, false},
		{"RMQ_SYS_x", false, false}, {"%RETRY%g", false, false}, {"%DLQ%g", false, false}, {"TopicA", false, false},
	} {
		if got := IsSystemTopic(c.topic); got != c.system {
			t.Errorf("IsSystemTopic(%s) = %v", c.topic, got)
		}
		if got := IsNotAllowedSendTopic(c.topic); got != c.noSender {
			t.Errorf("IsNotAllowedSendTopic(%s) = %v", c.topic, got)
		}
	}
	if RetryTopic("g") != "%RETRY%g" || DLQTopic("g") != "%DLQ%g" || ReplyTopic("C") != "C_REPLY_TOPIC" ||
		!IsRetryTopic("%RETRY%g") || !IsDLQTopic("%DLQ%g") || IsRetryTopic("g") || IsDLQTopic("g") ||
		!IsSystemGroup("CID_RMQ_SYS_TRANS") || IsSystemGroup("g") {
		t.Error("names of derived topics and groups")
	}
}

func TestSysFlag(t *testing.T) {
	if CompressionType(0x301) != CompressionZLIB || CompressionType(0x1) != CompressionZLIB || CompressionType(0x101) != CompressionLZ4 {
		t.Error("CompressionType")
	}
	if ResetTransactionValue(0x30d, TransactionNot) != 0x301 || TransactionValue(0x309) != TransactionCommit {
		t.Error("transaction values")
	}
	for flag, want := range map[int32]bool{0x301: true, 0x4: false, 0x8: true, 0xc: false} {
		if Queued(flag) != want {
			t.Errorf("Queued(%#x) = %v", flag, !want)
		}
	}
}
