package broker

import (
	"errors"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"rocketd/broker/delay"
	"rocketd/broker/longpoll"
	"rocketd/broker/timer"
	"rocketd/broker/topics"
	"rocketd/broker/transaction"
	"rocketd/compat"
	"rocketd/protocol/body"
	"rocketd/remoting"
	"rocketd/store"
)

// messagePath is what the message path owns in a broker beside the store: held pulls, delayed messages, half messages.
type messagePath struct {
	levels store.DelayLevels           // fixed at New
	held   *longpoll.Holder            // made at New, runs from Start on
	delay  atomic.Pointer[delay.Delay] // made at Start
	timer  atomic.Pointer[timer.Timer] // made at Start; nil without timerWheelEnable
	cold   *coldPulls                  // made at New
	env    atomic.Pointer[sendEnv]     // what sends take from the configuration in force
	checks *transaction.Checks         // of half messages; made at Start
	pop    popPath                     // POP consumption

	stopping atomic.Bool // held pulls have been answered, none is held any more
}

// scanPeriod is how often the official scan looks at held pulls.
const scanPeriod = 5 * time.Second

// openPath makes the message path's parts; neither tables nor store are open yet. Called by New.
func (b *Broker) openPath() (err error) {
	if b.path.levels, err = store.ParseDelayLevels(b.config().MessageDelayLevel); err != nil {
		return err
	}
	b.path.cold = newColdPulls()
	b.openPop()
	b.path.held = longpoll.New(longpoll.Options{
		Clock:     b.clock,
		MaxOffset: func(topic string, queueId int32) int64 { return b.store.MaxOffset(topic, queueId) },
		ScanPeriod: func() time.Duration {
			if cfg := b.config(); !cfg.LongPollingEnable {
				return compat.Millis(max(1, cfg.ShortPollingTimeMills))
			}
			return scanPeriod
		},
		Workers: runtime.GOMAXPROCS(0),
		Limit:   func() int64 { return b.config().MaxHeldPulls },
	})
	return nil
}

// startPath starts them; the store has started, the ports are not open yet. Called by Start.
func (b *Broker) startPath() error {
	cfg := b.config()
	b.warnOrphans()
	d, err := delay.Open(delay.Options{
		Levels: b.path.levels, Store: b.store, Clock: b.clock, Log: b.log, Files: b.files,
		Path:       filepath.Join(cfg.configDir(), "delayOffset.json"),
		SavePeriod: compat.Millis(cfg.FlushDelayOffsetInterval),
		Delivered:  b.countDelivered,
	})
	if err != nil {
		return err
	}
	b.path.delay.Store(d)
	d.Start()
	if err := b.startTimer(); err != nil {
		return err
	}
	b.path.checks = transaction.New(b.checkOptions())
	b.path.checks.Start()
	b.path.held.Start()
	b.startPop()
	return nil
}

// answerHeld answers every held pull with PULL_NOT_FOUND and its own offset as nextBeginOffset, and holds none
// from now on. Called by Close, before the ports close. It never waits for a peer.
func (b *Broker) answerHeld() {
	b.path.stopping.Store(true)
	b.path.held.Close()
	b.path.pop.held.Close()
	b.path.pop.notices.Close()
}

// closePath ends the message path's goroutines and saves its state; the store is still open. Called by Close.
func (b *Broker) closePath() error {
	b.path.cold.close()
	b.closePop()
	if c := b.path.checks; c != nil {
		c.Close()
	}
	var errs []error
	if t := b.path.timer.Load(); t != nil {
		errs = append(errs, t.Close())
	}
	if d := b.path.delay.Load(); d != nil {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// arrive is the store's Arrive: a message can be pulled now. It runs on the dispatcher's goroutine.
func (b *Broker) arrive(a store.Arrival) {
	if a.Topic == topics.Schedule {
		if d := b.path.delay.Load(); d != nil {
			d.Arrived(a.QueueId)
		}
	}
	b.path.pop.held.Arrive(a.Topic, a.QueueId, a.TagsCode, a.Properties)
	b.path.pop.notices.Arrive(a.Topic, a.QueueId, a.TagsCode, a.Properties)
	if a.Topic == topics.Timer {
		if t := b.path.timer.Load(); t != nil {
			t.Arrived()
		}
	}
	b.path.held.Arrive(a.Topic, a.QueueId, a.QueueOffset, a.TagsCode, a.Properties)
}

// deliverTime is the store's DeliverTime: when a delayed message is due (ms).
func (b *Broker) deliverTime(level int, storeTimestamp int64) int64 {
	return b.path.levels.DeliverTime(level, storeTimestamp)
}

// pathClosed is told that a connection has ended.
func (b *Broker) pathClosed(conn *remoting.Conn) {
	b.path.held.OwnerGone(conn)
	b.path.pop.held.OwnerGone(conn)
	b.path.pop.notices.OwnerGone(conn)
}

// delayStats adds scheduleMessageOffset_<level> = "delivered,max" for every level that has an offset
// (GET_BROKER_RUNTIME_INFO).
func (b *Broker) delayStats(add func(key, value string)) {
	d := b.path.delay.Load()
	if d == nil {
		return
	}
	for level, offset := range d.Offsets() {
		if offset == 0 { // nothing delivered yet: 4.9.8 has no place for the level
			continue
		}
		add("scheduleMessageOffset_"+strconv.Itoa(int(level)), strconv.FormatInt(offset, 10)+","+
			strconv.FormatInt(b.store.MaxOffset(topics.Schedule, level-1), 10))
	}
}

// delayOffsets is the body of GET_ALL_DELAY_OFFSET.
func (b *Broker) delayOffsets() ([]byte, error) {
	w := &body.DelayOffsetSerializeWrapper{OffsetTable: map[int32]int64{}}
	if d := b.path.delay.Load(); d != nil {
		for level, offset := range d.Offsets() {
			if offset > 0 { // as the file: a level without a delivery has no place
				w.OffsetTable[level] = offset
			}
		}
	}
	return compat.Marshal(w)
}
