//go:build conformance

package bugs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rocketd/conformance/wire"
)

const parseFailed = 23

// checkSQL asks whether a SQL92 expression can be served, as a Java consumer does at its start.
func (s *server) checkSQL(topic, expression string) *wire.Frame {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"clientId": "c", "group": "g", "subscriptionData": map[string]any{
		"topic": topic, "subString": expression, "expressionType": "SQL92", "subVersion": 1}})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.Ask(wire.Request(46).WithBody(body))
}

// H24 (#10862): a literal zero with a point is a number in SQL92. The official server refuses it; its code and remark are part of
// the case, so that a server that is mended there is noticed.
func TestZeroInExpression(t *testing.T) {
	t.Parallel()
	s := dialShared(t)
	topic := s.topic("H24", 1)
	for _, a := range []string{"0", "0.0", "1", "-1", "x", "0.5"} {
		s.Done(message(topic, 0, wire.Properties("a", a), a))
	}
	s.stored(topic, 0, 0, 6)
	for expression, want := range map[string][]string{
		"a = 0.0": {"0", "0.0"}, "a > 0.0": {"1", "0.5"}, "a <> 0.0": {"1", "-1", "0.5"}, "a BETWEEN 0.0 AND 0.5": {"0", "0.0", "0.5"}, "a = .0e3": {"0", "0.0"},
	} {
		answer := s.checkSQL(topic, expression)
		if official() {
			if answer.Code != parseFailed || !strings.Contains(answer.Remark, "is less than 4.9E-324") {
				t.Errorf("%s: %d %s", expression, answer.Code, answer.Remark)
			}
			continue
		}
		if answer.Code != success {
			t.Errorf("%s: %d %s", expression, answer.Code, answer.Remark)
		}
		var got []string
		pulled := s.Done(pullFrame(topic, 0, 0, expression).Set("expressionType", "SQL92"))
		ms, err := wire.Messages(pulled.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			got = append(got, string(m.Body))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s takes %q, want %q", expression, got, want)
		}
	}
}

// H25 (#5774): a property name with a slash is refused with code 23 and the place in the expression, whoever asks. The official server
// says so when asked before; to a pull of a consumer that did not ask it says code 27 without a reason, and gives every
// message when the pull brings the expression.
func TestSlashInName(t *testing.T) {
	t.Parallel()
	s := dialShared(t)
	topic := s.topic("H25", 1)
	s.Done(message(topic, 0, wire.Properties("a/b", "2"), "x"))
	s.stored(topic, 0, 0, 1)
	const place = "Lexical error at line 1, column 3.  Encountered: \"b\" (98), after : \"/\""
	refused := func(what string, answer *wire.Frame) {
		t.Helper()
		if answer.Code != parseFailed || !strings.Contains(answer.Remark, place) {
			t.Errorf("%s: %d %s", what, answer.Code, answer.Remark)
		}
	}
	refused("check", s.checkSQL(topic, "a/b > 1"))
	s.Done(wire.Request(34).WithBody([]byte(`{"clientID":"c","consumerDataSet":[{"groupName":"H25-group","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING",` +
		`"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","subscriptionDataSet":[{"topic":"` + topic + `","subString":"a/b > 1","expressionType":"SQL92","subVersion":1}]}]}`)))
	bySubscription := s.Ask(pullFrame(topic, 0, 0, "").Set("consumerGroup", "H25-group").Set("sysFlag", "0"))
	withIt := s.Ask(pullFrame(topic, 0, 0, "a/b > 1").Set("expressionType", "SQL92"))
	if official() {
		if bySubscription.Code != 27 || withIt.Code != success {
			t.Errorf("%d %s, %d %s", bySubscription.Code, bySubscription.Remark, withIt.Code, withIt.Remark)
		}
		return
	}
	refused("pull by the subscription", bySubscription)
	refused("pull with it", withIt)
}
