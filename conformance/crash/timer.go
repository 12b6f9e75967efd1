package crash

// TimerRecall is a recall of a message that waits for its time.
type TimerRecall struct {
	Outcome  Outcome
	Code     int
	Answered int64 // ms
}

// TimerSend is a message that was sent to be delivered at a time of its own. It is Attempt{Id, 1}.
type TimerSend struct {
	Id       int
	Place    Place
	Digest   Digest
	Outcome  Outcome
	Earliest int64 // ms: before that it can't be due, whatever the answer
	Due      int64 // ms: when it is, as the answer says; 0: unknown, or at once
	Recall   *TimerRecall
}

// due is when a message is due at the earliest.
func (s *TimerSend) due() int64 { return max(s.Due, s.Earliest) }

// TimerHistory is all that producers and consumers have seen of such messages.
type TimerHistory struct {
	*History
	Messages []*TimerSend // guarded by the history's lock
	// At the kills: messages that wait, and sends and recalls without an answer.
	Waiting, Sent, RecallsSent int
}

// timerChecker judges a history of timer messages.
type timerChecker struct {
	*checker
	h                *TimerHistory
	there            map[int][]*Record
	delivered, again int
}

// CheckTimers judges a history of messages with a time of their own that has been read when all were due:
//
//   - an accepted message is delivered, once but for a kill between two deliveries, and not before its time;
//   - one whose recall was answered before its time is never delivered;
//   - nothing is delivered that nobody sent, and with the content that was sent; no recall of a message that waits is refused.
func CheckTimers(h *TimerHistory) *Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &timerChecker{checker: newChecker(h.History), h: h, there: map[int][]*Record{}}
	c.values()
	c.ends()
	byId := map[int]*TimerSend{}
	for _, s := range h.Messages {
		byId[s.Id] = s
	}
	for p, records := range c.final {
		for _, offset := range sorted(records) {
			r := records[offset]
			s := byId[r.Message]
			switch {
			case s == nil || r.Try != 1 || s.Outcome == Refused:
				c.v.fault(Phantom, "%s offset %d: %s", p, offset, r.Attempt)
				continue
			case s.Digest != r.Digest || s.Place != p:
				c.v.fault(Wrong, "%s offset %d: message %d was sent to %s, or with another content", p, offset, s.Id, s.Place)
			}
			c.there[s.Id] = append(c.there[s.Id], r)
		}
	}
	for _, s := range h.Messages {
		c.message(s)
	}
	c.count()
	c.figures()
	return c.v
}

func (c *timerChecker) message(s *TimerSend) {
	all := c.there[s.Id]
	for i, r := range all {
		c.delivered++
		if due := max(s.due(), r.Due); r.StoreTimestamp < due {
			c.v.fault(Early, "%s: message %d was due at %d and was delivered %d ms too early, to %d", s.Place, s.Id, due, due-r.StoreTimestamp, r.Offset)
		}
		if i > 0 {
			c.again++
			if !c.killedBetween(all[i-1].StoreTimestamp, r.StoreTimestamp) {
				c.v.fault(CopiedAgain, "%s: message %d was delivered to %d and %d", s.Place, s.Id, all[i-1].Offset, r.Offset)
			}
		}
	}
	recall := s.Recall
	switch {
	case recall == nil:
	case recall.Outcome == Refused && recall.Answered < s.due():
		c.v.fault(RecallRefused, "message %d, %d ms before it was due: %d", s.Id, s.due()-recall.Answered, recall.Code)
	case recall.Outcome == Acknowledged && recall.Answered < s.due() && len(all) > 0:
		c.v.fault(RecalledSeen, "message %d, recalled %d ms before it was due, %d deliveries", s.Id, s.due()-recall.Answered, len(all))
	}
	if s.Outcome == Acknowledged && len(all) == 0 && (recall == nil || recall.Outcome == Refused) {
		c.v.fault(Undelivered, "message %d to %s, due at %d", s.Id, s.Place, s.due())
	}
}

func (c *timerChecker) figures() {
	accepted, recalled, unanswered := 0, 0, 0
	for _, s := range c.h.Messages {
		if s.Outcome == Acknowledged {
			accepted++
		}
		if s.Outcome == Unanswered {
			unanswered++
		}
		if s.Recall != nil && s.Recall.Outcome == Acknowledged {
			recalled++
		}
	}
	c.v.Figures = []Figure{{"accepted", accepted}, {"without an answer", unanswered}, {"recalled", recalled}, {"deliveries", c.delivered},
		{"of these again", c.again}, {"kills met: messages that wait", c.h.Waiting}, {"sends under way", c.h.Sent}, {"recalls under way", c.h.RecallsSent}}
}
