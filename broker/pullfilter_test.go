package broker

import (
	"fmt"
	"strings"
	"testing"

	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting/remotingtest"
)

// The checks of a pull by SQL92, in the order and with the remarks of PullMessageProcessor of 4.9.8.
func TestPullBySQL92(t *testing.T) {
	const notServed = "The broker does not support consumer to filter message by SQL92"
	const reason = `org.apache.rocketmq.filter.parser.TokenMgrError: Lexical error at line 1, column 3.  Encountered: "b" (98), after : "/"`
	for _, enabled := range []bool{true, false} {
		b := startPathBroker(t, func(c *Config) { c.EnablePropertyFilter = enabled })
		for i := range 4 {
			b.send("T", 0, fmt.Sprintf("a=%d", i), fmt.Sprint(i))
		}
		b.stored("T", 0, 0, 4)
		pull := func(name string, sysFlag int32, expressionType, expression string, version int64, code protocol.ResponseCode, remark string, want ...string) {
			t.Helper()
			h := pullHeader("T", 0, 0)
			h.SysFlag, h.ExpressionType, h.Subscription, h.SubVersion = sysFlag, expressionType, expression, version
			a := b.ask(protocol.PullMessage, h, nil)
			if a.Code != int32(code) || a.Remark != remark {
				t.Errorf("%v, %s: %d %q, want %d %q", enabled, name, a.Code, a.Remark, code, remark)
			}
			var got []string
			if a.Code == 0 {
				for _, m := range b.messages(a) {
					got = append(got, string(m.Body))
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%v, %s: %q, want %q", enabled, name, got, want)
			}
		}
		subscribe := func(expressionType, expression string, version int64) {
			t.Helper()
			b.heartbeat(body.Clustering, body.SubscriptionData{Topic: "T", SubString: expression, ExpressionType: expressionType, SubVersion: version})
		}
		pull("no text", pullSubscription, "SQL92", "", 0, 23, parseFailed)
		subscribe("SQL92", "a > 1", 5)
		if !enabled {
			pull("with it", pullSubscription, "SQL92", "a > 2", 0, 1, notServed)
			pull("wrong", pullSubscription, "SQL92", "a/b > 2", 0, 1, notServed)
			pull("by heartbeat", 0, "", "", 5, 1, notServed)
			subscribe("SQL92", "a/b > 1", 6)
			pull("wrong, by heartbeat", 0, "", "", 6, 27, "The broker's consumer filter data is not exist!Your expression may be wrong!")
			continue
		}
		pull("with it", pullSubscription, "SQL92", "a BETWEEN 1 AND 2", 0, 0, "FOUND", "1", "2")
		pull("none", pullSubscription, "SQL92", "a > 7", 0, 20, "NO_MATCHED_MESSAGE")
		pull("wrong", pullSubscription, "SQL92", "a/b > 2", 0, 23, parseFailed+" at line 1, column 2: "+reason)
		pull("no comparison", pullSubscription, "SQL92", "a = 5 OR\n b > 'x'", 0, 23, parseFailed+" at line 2, column 6: java.lang.RuntimeException: Value ''x'' cannot be compared.")
		pull("no such type", pullSubscription, "SQL99", "a > 2", 0, 23, parseFailed+": there is no expression type SQL99")
		pull("by heartbeat", 0, "", "", 5, 0, "FOUND", "2", "3")
		pull("not latest", 0, "", "", 6, 25, "the consumer's subscription not latest")
		subscribe("SQL92", "a/b > 1", 6)
		pull("wrong, by heartbeat", 0, "", "", 6, 23, parseFailed+" at line 1, column 2: "+reason)
		subscribe("SQL92", "", 7)
		pull("empty, by heartbeat", 0, "", "", 7, 27, "The broker's consumer filter data is not exist!Your expression may be wrong!")
		subscribe("SQL92", "a = 3", 8)
		pull("right again", 0, "", "", 8, 0, "FOUND", "3")
		subscribe("SQL92", "", 9) // the group's subscription is newer than its expression
		pull("expression not latest", 0, "", "", 9, 28, "the consumer's consumer filter data not latest")
	}
}

// CHECK_CLIENT_CONFIG of 4.9.8; the remark shows where the expression ends.
func TestCheckExpression(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.EnablePropertyFilter = true })
	for text, want := range map[string]string{
		"a > 1": "", "a = 0.0": "", "a >": "org.apache.rocketmq.filter.parser.ParseException: Encountered \"<EOF>\" at line 1, column 3.\n" +
			"Was expecting one of:\n    \"NOT\" ...\n    \"TRUE\" ...\n    \"FALSE\" ...\n    \"NULL\" ...\n    <DECIMAL_LITERAL> ...\n    <FLOATING_POINT_LITERAL> ...\n" +
			"    <STRING_LITERAL> ...\n    <ID> ...\n    \"(\" ...\n    \"-\" ...\n    ",
	} {
		code := protocol.Success
		if want != "" {
			code = protocol.SubscriptionParseFailed
		}
		check(t, text, b.ask(protocol.CheckClientConfig, nil, []byte(`{"subscriptionData":{"expressionType":"SQL92","topic":"T","subString":"`+text+`"}}`)), code, want)
	}
	check(t, "unknown type", b.ask(protocol.CheckClientConfig, nil, []byte(`{"subscriptionData":{"expressionType":"X","topic":"T","subString":"a"}}`)),
		protocol.SubscriptionParseFailed, "there is no expression type X")
}

// The bits of the dispatcher spare a pull the records that its expression excludes, and lose none that it takes.
func TestPullWithBits(t *testing.T) {
	b := startPathBroker(t, func(c *Config) {
		c.EnablePropertyFilter, c.EnableCalcFilterBitMap, c.EnableConsumeQueueExt = true, true, true
		c.MappedFileSizeConsumeQueueExt = 1 << 20
	})
	b.send("T", 0, "a=5", "before")
	b.stored("T", 0, 0, 1)
	b.heartbeat(body.Clustering, body.SubscriptionData{Topic: "T", SubString: "a > 1", ExpressionType: "SQL92", SubVersion: 1})
	born := b.filters.Find("T", "CG").BornTime
	remotingtest.Eventually(t, "the clock moves on", func() bool { return b.clock().UnixMilli() > born })
	for i := range 4 {
		b.send("T", 0, fmt.Sprintf("a=%d", i), fmt.Sprint(i))
	}
	b.stored("T", 0, 0, 5)
	h := pullHeader("T", 0, 0)
	h.SysFlag = 0
	var got []string
	for _, m := range b.messages(b.ask(protocol.PullMessage, h, nil)) {
		got = append(got, string(m.Body))
	}
	if fmt.Sprint(got) != "[before 2 3]" {
		t.Errorf("got %q", got)
	}
	a := b.ask(protocol.QueryConsumeQueue, &header.QueryConsumeQueueRequest{Topic: "T", Count: 9, ConsumerGroup: "CG"}, nil)
	if n := strings.Count(string(a.Body), `"eval":true`); n != 3 {
		t.Errorf("%d pass by their bits: %s", n, a.Body)
	}
}
