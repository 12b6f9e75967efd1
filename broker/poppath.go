package broker

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"rocketd/broker/pop"
	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol/message"
	"rocketd/store"
)

// popPath is what a broker keeps of POP consumption (package pop).
type popPath struct {
	checkpoints *pop.Checkpoints // made at New, filled at Start
	held        *pop.Holder      // pops that wait
	notices     *pop.Holder      // requests NOTIFICATION that wait: they take nothing from the pops
	modes       *pop.Modes       // opened with the tables
	orders      *compat.Saver    // of consumerOrderInfo.json; opened with the tables
	turn        atomic.Uint32    // of revive queue ids
	routes      routes           // of topics that are shared out
	crashed     bool             // the file of offsets may be older than the log; set at New
}

// reviveQueueNum is how many revive queue ids clients see, as of 5.3.3. There is one queue in truth.
const reviveQueueNum = 8

// openPop makes the parts; neither tables nor store are open yet.
func (b *Broker) openPop() {
	p := &b.path.pop
	limits := pop.HolderOptions{Clock: b.clock, Workers: runtime.GOMAXPROCS(0), Limits: func() (int, int) {
		cfg := b.config()
		return cfg.MaxPopPollingSize, cfg.PopPollingSize
	}}
	p.held = pop.NewHolder(limits)
	limits.Workers = 1
	p.notices = pop.NewHolder(limits)
}

// ordersLost is what it means to start without consumerOrderInfo.json.
const ordersLost = "batches of orderly POP consumers that are under way come again at once"

// openPopTables opens the files of POP consumption; the store is open.
func (b *Broker) openPopTables(cfg *Config) (err error) {
	p := &b.path.pop
	if p.modes, err = pop.OpenModes(filepath.Join(cfg.configDir(), "messageRequestMode.json"), b.files, b.log, func() int { return b.config().MaxRequestModes }); err != nil {
		return err
	}
	p.checkpoints = pop.New(pop.Options{
		Store: b.store, Clock: b.clock, Log: b.log, Host: b.storeHost,
		Place: func() (int64, bool) { return b.offsets.Query(pop.ReviveGroup, pop.LogTopic, 0) },
		SetPlace: func(offset int64) {
			b.offsets.Commit(itself{b}, pop.ReviveGroup, pop.LogTopic, 0, offset)
		},
		Advance:    b.advance,
		Copy:       b.popAgain,
		Copied:     b.countAgain,
		Save:       b.savePopped,
		SavePeriod: cfg.saveOffsetsPeriod(),
	})
	path := filepath.Join(cfg.configDir(), "consumerOrderInfo.json")
	if _, err = compat.LoadConfigFileOrNone(b.files, path, b.log, ordersLost, p.checkpoints.DecodeOrders); err != nil {
		return err
	}
	p.orders = compat.NewSaver(b.files, path, p.checkpoints.EncodeOrders, b.log)
	return nil
}

// startPop reads the log of popped messages and begins to let them come again.
func (b *Broker) startPop() {
	b.path.pop.checkpoints.Start()
	b.path.pop.held.Start()
	b.path.pop.notices.Start()
}

// closePop ends it; the store is still open.
func (b *Broker) closePop() {
	if c := b.path.pop.checkpoints; c != nil {
		c.Close()
	}
}

// closePopTables writes the files of POP consumption.
func (b *Broker) closePopTables() (errs []error) {
	p := &b.path.pop
	if p.orders != nil {
		if p.checkpoints.OrdersChanged() {
			p.orders.Changed(nil)
		}
		errs = append(errs, p.orders.Close())
	}
	if p.modes != nil {
		errs = append(errs, p.modes.Close())
	}
	return errs
}

// advance moves a group's offset to where a pop has brought it before the broker was killed, which the file of offsets
// may not know. After a stop in order it knows, and may say something else since.
func (b *Broker) advance(k pop.Key, offset int64) {
	if !b.path.pop.crashed {
		return
	}
	if at, ok := b.offsets.Query(k.Group, k.Topic, k.QueueId); (!ok || at < offset) && offset <= b.store.MaxOffset(k.Topic, k.QueueId) {
		b.offsets.Commit(itself{b}, k.Group, k.Topic, k.QueueId, offset)
	}
}

// setBackPopped records that a group was set back in a queue, if it pops it.
func (b *Broker) setBackPopped(k pop.Key, offset int64) {
	if err := b.path.pop.checkpoints.SetBack(k, offset); err != nil {
		b.log.Warn("a kill may undo that a group was set back", "topic", k.Topic, "group", k.Group, "queueId", k.QueueId, "offset", offset, "err", err)
	}
}

// flushPopped bounds the wait for the log before offsets are saved.
const flushPopped = 5 * time.Second

// saveOffsets has the consumer offsets written, once the records of the pops that have moved them are durable: else a
// power failure could leave offsets behind messages that nobody remembers to let come again.
func (b *Broker) saveOffsets() {
	if b.path.pop.checkpoints.OrdersChanged() {
		b.path.pop.orders.Changed(nil)
	}
	end := b.path.pop.checkpoints.End()
	if end == 0 {
		b.offsets.Save()
		return
	}
	b.store.WaitFlushed(end, flushPopped, func(err error) {
		if err == nil {
			b.offsets.Save()
		}
	})
}

// savePopped has the consumer offsets written and waits for it; the records of the pops are durable.
func (b *Broker) savePopped() error {
	done := make(chan error, 1)
	b.offsets.Saved(func(err error) { done <- err })
	return <-done
}

// popLogTopic makes the topic of the records. Nobody may read it or send to it; it is in the table so that its queue is
// not cleaned away, by this broker or an official one.
func (b *Broker) popLogTopic() {
	if _, ok := b.topics.Lookup(pop.LogTopic); !ok {
		if _, created := b.topics.CreateBySendBack(pop.LogTopic, 1, 0, 0); created {
			b.topics.Saved(nil)
		}
	}
}

// defaultTries is how often a stock 5.x client lets a message come again before it acknowledges it unconsumed.
const defaultTries = 16

// popAgain makes a message that was popped and not acknowledged the one that its group gets next, or the group's dead
// letter.
//
// The official broker has no dead letters for POP over remoting. A stock client that fails with a message whose
// reconsumeTimes have reached its limit (16) acknowledges it once it is four hours old, and so the message is lost. Here
// it becomes a dead letter instead: before that client gets it for the seventeenth time, else when it has come
// retryMaxTimes times again, as for consumers that pull.
func (b *Broker) popAgain(k pop.Key, popTime int64, m *message.Message) error {
	limit := int32(defaultTries)
	if g, ok := b.groups.Lookup(k.Group); ok { // one that was deleted stays so
		limit = g.RetryMaxTimes
	}
	if limit >= defaultTries {
		limit--
	}
	text := m.Properties
	if m.ReconsumeTimes >= limit {
		t, created := b.popTopic(topics.DLQTopic(k.Group), dlqQueues)
		if created { // the copy in a topic that nobody remembers would be lost
			if err := b.saved(b.topics.Saved); err != nil {
				return err
			}
		}
		if t != nil {
			popCopy(m, t.TopicName, withOrigin(m, pop.Origin(k, text)))
			return nil
		}
	}
	retry := k.Topic
	if !topics.IsRetry(retry) {
		retry = pop.RetryTopic(k.Group, k.Topic)
	}
	if t, created := b.popTopic(retry, 1); t == nil {
		retry = k.Topic // back to where it came from, rather than lost
	} else if created {
		if err := b.saved(b.topics.Saved); err != nil {
			return err
		}
		// The group may have an offset there from a topic of that name that was deleted.
		if at, ok := b.offsets.Query(k.Group, retry, 0); !ok || at > b.store.MaxOffset(retry, 0) {
			b.offsets.Commit(itself{b}, k.Group, retry, 0, b.store.MaxOffset(retry, 0))
		}
	}
	if !strings.HasPrefix(retry, topics.RetryPrefix+k.Group+"_") && retry != k.Topic { // the name does not tell
		if _, ok := message.Property(text, message.PropertyRetryTopic); !ok {
			text = message.SetProperty(text, message.PropertyRetryTopic, k.Topic)
		}
	}
	if _, ok := message.Property(text, message.PropertyFirstPopTime); !ok {
		text = message.SetProperty(text, message.PropertyFirstPopTime, strconv.FormatInt(popTime, 10))
	}
	popCopy(m, retry, text)
	return nil
}

// popCopy makes a message the copy for a topic. One whose properties would get too long keeps its old ones.
func popCopy(m *message.Message, topic, properties string) {
	if topic != m.Topic {
		m.QueueId = 0
	}
	m.Topic = topic
	m.ReconsumeTimes++
	if len(properties) <= message.MaxPropertiesLength {
		m.Properties = properties
	}
}

// popTopic is a topic for messages that come again, or for dead letters, made at need; nil when there can be none.
func (b *Broker) popTopic(name string, queues int32) (t *topics.Config, created bool) {
	if len(name) > message.MaxTopicLength {
		return nil, false
	}
	return b.topics.CreateBySendBack(name, queues, topics.PermRead|topics.PermWrite, 0)
}

// countAgain counts a copy that was stored.
func (b *Broker) countAgain(k pop.Key, p *store.Put) {
	b.stats.put(1, 1, int64(p.Size), 0)
	b.countSentBack(k.Group, pop.Origin(k, p.Message.Properties), p)
	b.log.Debug("popped message comes again", "group", k.Group, "topic", p.Message.Topic, "queueId", k.QueueId, "reconsumeTimes", p.Message.ReconsumeTimes)
}

// forgetPopped forgets what is under way in queues whose topic or group is deleted.
func (b *Broker) forgetPopped(of func(pop.Key) bool) {
	if err := b.path.pop.checkpoints.Forget(of); err != nil {
		b.log.Warn("popped messages of what is deleted may come again", "err", err)
	}
}
