package broker

import (
	"fmt"
	"runtime/debug"

	"rocketd/protocol"
	"rocketd/remoting"
)

// recovered is deferred where a request for a topic and of a group, if it has these, runs outside its lane: a panic is answered.
func (b *Broker) recovered(c *remoting.Call, topic, group string) {
	if reason := recover(); reason != nil {
		b.log.Error("request panic", "code", protocol.RequestCode(c.Command().Code).String(), "topic", topic, "group", group,
			"panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
		c.ReplyError(protocol.Errorf(protocol.SystemError, "internal error: %v", reason))
	}
}
