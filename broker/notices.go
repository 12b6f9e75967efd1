package broker

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"rocketd/protocol"
	"rocketd/remoting"
)

// noticeEvery is the least time between two lines about the same thing, noticeBound how many things are known, and
// noticeLength by how many bytes of their names, which peers choose, they are told apart.
const (
	noticeEvery  = time.Minute
	noticeBound  = 1024
	noticeLength = 256
)

// notices keeps the log readable when peers repeat what they should not do. It is ready as it is.
type notices struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// due tells whether a line about thing may be written now.
func (n *notices) due(thing string, now time.Time) bool {
	if len(thing) > noticeLength {
		thing = strings.Clone(thing[:noticeLength]) // without the rest, which may have the size of a frame
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if last, ok := n.last[thing]; ok && now.Sub(last) < noticeEvery {
		return false
	}
	if len(n.last) >= noticeBound {
		for t, last := range n.last {
			if now.Sub(last) >= noticeEvery {
				delete(n.last, t)
			}
		}
		if len(n.last) >= noticeBound {
			return false
		}
	}
	if n.last == nil {
		n.last = make(map[string]time.Time)
	}
	n.last[thing] = now
	return true
}

// refuse answers a code that has no route, and tells the log.
func (b *Broker) refuse(c *remoting.Call) *protocol.Command {
	code := protocol.RequestCode(c.Command().Code)
	if b.notices.due("code "+strconv.Itoa(int(code)), b.clock()) {
		reason := Unsupported[code]
		if reason == "" {
			reason = "no request code of 4.9.8"
		}
		b.log.Info("request code refused", "code", int(code), "reason", reason, "client", c.Conn().RemoteAddr())
	}
	return unsupported(c)
}

// unknownGroup tells the log of a consumer whose group does not exist and may not be created.
func (b *Broker) unknownGroup(group, clientId string, conn *remoting.Conn) {
	if b.notices.due("group "+group, b.clock()) {
		b.log.Warn("consumer of an unknown group: its pulls are refused; create the group (mqadmin updateSubGroup), or set autoCreateSubscriptionGroup=true",
			"group", group, "clientId", clientId, "client", conn.RemoteAddr())
	}
}
