//go:build conformance

package bugs

import (
	"errors"
	"strings"
	"testing"

	"rocketd/conformance/wire"
)

// Trap 5: a send to a queue that is not there is refused, one to a negative queue goes to any. Trap 6: names of topics have at most
// 127 characters of few alphabets. The official server does the same. (Stock clients check names before they send; mqadmin does not.)
func TestQueuesAndNamesOfTopics(t *testing.T) {
	t.Parallel()
	s := dialShared(t)
	topic := s.topic("Trap5", 2)
	const (
		long    = "The specified topic is longer than topic max length."
		illegal = `The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$`
		queue   = "request queueId[2] is illegal, TopicConfig [topicName=Trap5, readQueueNums=2, writeQueueNums=2, perm=RW-, " +
			"topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false]"
	)
	for _, c := range []struct {
		name    string
		queueId int
		code    int
		remark  string
	}{
		{topic, 1, success, ""},
		{topic, -1, success, ""},
		{topic, -2147483648, success, ""},
		{topic, 2, systemError, queue},
		{strings.Repeat("n", 127), 0, success, ""},
		{strings.Repeat("n", 128), 0, systemError, long},
		{strings.Repeat("n", 255), 0, systemError, long},
		{strings.Repeat("n", 4096), 0, systemError, long},
		{"%RETRY|-_09azAZ", 0, success, ""},
		{"Grüße", 0, systemError, illegal},
		{"a.b", 0, systemError, illegal},
		{" ", 0, systemError, "The specified topic is blank."},
	} {
		answer := s.Ask(message(c.name, c.queueId, "", "x"))
		if answer.Code != c.code || !strings.HasPrefix(answer.Remark, c.remark) {
			t.Errorf("%.20q %d: %d %q, want %d %q", c.name, c.queueId, answer.Code, answer.Remark, c.code, c.remark)
		}
	}
}

// Trap 10: a frame has at most 16,777,216 bytes with its length; one more ends the connection. Either form of the header is answered
// in itself. The official server does the same.
func TestLargestFrame(t *testing.T) {
	t.Parallel()
	const limit = 16 << 20
	topic := dialShared(t).topic("Trap10", 1)
	for _, form := range []byte{wire.JSON, wire.Binary} {
		s := dialShared(t)
		request := wire.Request(30, "topic", topic, "queueId", "0")
		request.Form, request.Opaque = form, 1
		request.WithBody(make([]byte, limit-len(request.Encode())))
		if answer := s.Done(request); answer.Form != form || answer.Ext["offset"] != "0" {
			t.Errorf("form %d: answered in form %d, %v", form, answer.Form, answer.Ext)
		}
		request.Opaque = 2
		if size := len(request.Encode()); size != limit {
			t.Fatalf("%d bytes", size)
		}
		request.WithBody(append(request.Body, 0))
		if _, err := s.Conn.Call(request, patience); !errors.Is(err, wire.ErrClosed) {
			t.Errorf("form %d, one byte more: %v", form, err)
		}
	}
}
