package broker

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"rocketd/broker/timer"
	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/message"
	"rocketd/store"
)

// Behaviour: messages with a time of their own, as HookUtils of 5.3.3 puts them off (broker/timer delivers them); 4.9.8 does not
// know them. What is different: a ms counts, and times that do not fit 64 bits are too far away.

// timerText is what the properties of a message say of its time; "" = absent.
type timerText struct {
	delaySec, delayMs, deliverMs, startDeliver string
	out, recall                                string
}

// note takes a property if it is one of these.
func (t *timerText) note(name, value string) {
	switch name {
	case message.PropertyTimerDelaySec:
		t.delaySec = value
	case message.PropertyTimerDelayMs:
		t.delayMs = value
	case message.PropertyTimerDeliverMs:
		t.deliverMs = value
	case message.PropertyStartDeliverTime:
		t.startDeliver = value
	case message.PropertyTimerOutMs:
		t.out = value
	case message.PropertyTimerDelUniqKey:
		t.recall = value
	}
}

// timerTextOf reads a properties text.
func timerTextOf(text string) (t timerText) {
	message.EachProperty(text, func(name, value string) bool {
		t.note(name, value)
		return true
	})
	return t
}

// set tells whether a message asks to be put off. One that has been already does not, nor does a copy of it.
func (t *timerText) set() bool {
	return t.out == "" && (t.delaySec != "" || t.delayMs != "" || t.deliverMs != "" || t.startDeliver != "")
}

// withoutTimer is a properties text without what asks for a time.
func withoutTimer(text string) string {
	return string(message.AppendProperties(nil, text, message.PropertyTimerDelaySec, message.PropertyTimerDelayMs,
		message.PropertyTimerDeliverMs, message.PropertyStartDeliverTime))
}

// errTimer: a time is no number, too far away, or in the past where that makes no sense.
var errTimer = errors.New("timer message illegal")

// due is when a message is due (ms since 1970); 0: at once.
func (t *timerText) due(now time.Time, cfg *Config) (int64, error) {
	since := now.UnixMilli()
	var at int64
	var err error
	switch {
	case t.delaySec != "":
		if at, err = strconv.ParseInt(t.delaySec, 10, 64); err == nil {
			if at > math.MaxInt64/1000 || at < math.MinInt64/1000 {
				err = errTimer
			}
			at = compat.Later(since, at*1000)
		}
	case t.delayMs != "":
		if at, err = strconv.ParseInt(t.delayMs, 10, 64); err == nil {
			at = compat.Later(since, at)
		}
	case t.deliverMs != "":
		at, err = strconv.ParseInt(t.deliverMs, 10, 64)
	default:
		at, err = strconv.ParseInt(t.startDeliver, 10, 64)
	}
	switch {
	case err != nil:
		return 0, errTimer
	case at <= since && t.recall != "":
		return 0, errTimer
	case at <= since:
		return 0, nil
	case at-since > cfg.timerMaxDelay():
		return 0, errTimer
	}
	return at, nil
}

func timerRemark(cfg *Config) string {
	return fmt.Sprintf("timer message illegal, the delay time should not be bigger than the max delay %dms; or if set del msg, the delay time should be bigger than the current time",
		cfg.timerMaxDelay())
}

// timerMaxDelay is the longest time (ms) that a message may be put off.
func (c *Config) timerMaxDelay() int64 {
	return compat.Span(c.TimerMaxDelaySec, time.Second).Milliseconds()
}

// timerRoom is what a properties text may still grow by when the message is stored again or delivered: two times and a count.
const timerRoom = 100

// putOff makes the message of a send one that waits until it is due, if it has to. False: the send has been answered.
func (b *Broker) putOff(r *sendRun, s *sending, t sendText, at int, now time.Time) bool {
	m := &s.msg
	due, err := t.timer.due(now, r.env.cfg)
	if err != nil {
		r.refuse(s, protocol.MessageIllegal, timerRemark(r.env.cfg))
		return false
	}
	if due == 0 {
		return true
	}
	s.realTopic, s.due = m.Topic, due
	created := b.timerTopic()
	s.created, r.created = s.created || created, r.created || created
	r.text = appendTimerText(r.text[:at], m, s.req.Properties, r.env.cfg.BrokerClusterName, due)
	m.Topic, m.QueueId = topics.Timer, 0
	if len(r.text)-at > message.MaxPropertiesLength-timerRoom {
		r.refuse(s, protocol.MessageIllegal, illegalRemark(r.env.cfg))
		return false
	}
	return true
}

// timerTopic makes the topic in which timer messages wait, for nobody to read or write, so that an official broker on the directory
// keeps its queue when it removes those without a topic; it returns whether the answer waits for topics.json.
func (b *Broker) timerTopic() bool {
	if _, ok := b.topics.Lookup(topics.Timer); !ok {
		b.topics.CreateBySendBack(topics.Timer, 1, 0, 0)
	}
	return b.topics.Unsaved(topics.Timer)
}

// ownTimerTopic is timerTopic for what does not wait for topics.json.
func (b *Broker) ownTimerTopic() {
	if b.timerTopic() {
		b.topics.Saved(nil)
	}
}

// appendTimerText appends the text of a message that is to wait until it is due: as that of a delayed one, with the time.
func appendTimerText(dst []byte, m *message.Message, text, cluster string, due int64) []byte {
	own := message.AppendProperties(nil, text, message.PropertyCluster, message.PropertyRealTopic, message.PropertyRealQueueId, message.PropertyTimerOutMs)
	own = message.AppendProperty(own, message.PropertyCluster, cluster)
	own = message.AppendProperty(own, message.PropertyTimerOutMs, strconv.FormatInt(due, 10))
	own = message.AppendProperty(own, message.PropertyRealTopic, m.Topic)
	own = message.AppendProperty(own, message.PropertyRealQueueId, strconv.Itoa(int(m.QueueId)))
	return append(dst, own...)
}

// recallHandle is what the producer of a timer message may recall it by; "" for one that it can't.
func (b *Broker) recallHandle(realTopic string, due int64, properties string) string {
	uniqKey, ok := message.Property(properties, message.PropertyUniqKey)
	if !ok || topics.IsRetry(realTopic) {
		return ""
	}
	return message.RecallHandle{Topic: realTopic, BrokerName: b.config().BrokerName, Timestamp: strconv.FormatInt(due+1, 10), UniqKey: uniqKey}.String()
}

// startTimer starts delivering timer messages, if that is asked for; the store has started.
func (b *Broker) startTimer() error {
	cfg := b.config()
	if !cfg.TimerWheelEnable {
		if n := b.store.MaxOffset(topics.Timer, 0) - b.store.MinOffset(topics.Timer, 0); n > 0 {
			b.log.Warn("timerWheelEnable is false: timer messages that wait are not delivered", "messages at most", n)
		}
		return nil
	}
	t, err := timer.Open(timer.Options{
		Store: b.store, Clock: b.clock, Log: b.log, Files: b.files,
		Path:       filepath.Join(cfg.configDir(), "rocketd-timer.json"),
		SavePeriod: compat.Millis(max(1, cfg.TimerFlushIntervalMs)),
		Delivered:  func(p *store.Put) { b.stats.put(1, 1, int64(p.Size), 0) },
	})
	if err != nil {
		return err
	}
	b.path.timer.Store(t)
	t.Start()
	return nil
}

// releaseLog is the store's Release: timer messages outlive the files of the log.
func (b *Broker) releaseLog(end int64) int64 {
	if t := b.path.timer.Load(); t != nil {
		return t.Release(end)
	}
	if !b.config().TimerWheelEnable {
		return end
	}
	return 0 // not started yet
}
