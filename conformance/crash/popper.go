package crash

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// popTopic and popGroup are for pops of any order, the others for those in order.
const (
	popTopic, popGroup         = "CrashPop", "CrashPoppers"
	orderlyTopic, orderlyGroup = "CrashPopOrder", "CrashOrderlyPoppers"
	popQueues                  = 2
	poppers                    = 4 // of each group
	popProducers               = 4
	popInvisible               = 1500 * time.Millisecond
)

// popper is a run of pops under way.
type popper struct {
	h     *PopHistory
	b     *target.Broker
	admin link

	next, batch atomic.Int64
	waiting     atomic.Int64 // pops under way
	stopping    atomic.Bool  // no new messages; everything is acknowledged
}

// RunPops loads a broker that has just been started with s.Conf with sends and pops, kills it again and again, and goes on
// until everything is acknowledged. Then the broker runs.
func RunPops(ctx context.Context, b *target.Broker, s Settings) (*PopHistory, error) {
	r := &popper{h: &PopHistory{History: NewHistory()}, b: b, admin: link{addr: b.Addr}}
	defer r.admin.close()
	for topic, group := range map[string]string{popTopic: popGroup, orderlyTopic: orderlyGroup} {
		if err := makeTopic(ctx, &r.admin, topic, popQueues); err != nil {
			return nil, err
		}
		if _, err := r.admin.call(ctx, wire.Request(200).WithBody([]byte(`{"groupName":"`+group+
			`","consumeEnable":true,"consumeFromMinEnable":true,"consumeBroadcastEnable":true,"retryQueueNums":1,"retryMaxTimes":16}`))); err != nil {
			return nil, err
		}
	}
	consumers, stop := context.WithCancel(ctx)
	defer stop()
	var producing, consuming sync.WaitGroup
	start := func(group *sync.WaitGroup, i int, f func(*link, *rand.Rand)) {
		l := &link{addr: b.Addr}
		group.Go(func() {
			defer l.close()
			f(l, newRand(s.Seed, uint64(i)))
		})
	}
	for i := range popProducers {
		start(&producing, 500+i, func(l *link, rng *rand.Rand) { r.produce(ctx, l, rng) })
	}
	for i := range 2 * poppers {
		start(&consuming, 600+i, func(l *link, rng *rand.Rand) { r.consume(consumers, l, rng, i%2 == 1) })
	}
	err := killAgain(ctx, b, s, newRand(s.Seed, 0), hooks{before: r.met, killed: r.h.kill})
	r.stopping.Store(true)
	producing.Wait()
	for deadline := r.h.now() + 4*deliveryPatience; err == nil && r.missing() > 0 && r.h.now() < deadline; {
		if !pause(ctx, 50*time.Millisecond) {
			err = ctx.Err()
		}
	}
	if err == nil && !pause(ctx, 2*popInvisible) { // what was acknowledged would come again within this time
		err = ctx.Err()
	}
	stop()
	consuming.Wait()
	return r.h, err
}

// missing counts the acknowledged sends that nobody has acknowledged.
func (r *popper) missing() int {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	open := map[int]bool{}
	for _, s := range r.h.Messages {
		if s.Outcome == Acknowledged {
			open[s.Id] = true
		}
	}
	for _, d := range r.h.Deliveries {
		for _, a := range d.Acks {
			if !a.Change && a.Outcome == Acknowledged {
				delete(open, d.Id)
			}
		}
	}
	return len(open)
}

// met counts what a kill has met.
func (r *popper) met() {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	now := time.Now().UnixMilli()
	for _, d := range r.h.Deliveries {
		last := len(d.Acks) - 1
		if last >= 0 && d.Acks[last].Answered == underWay {
			r.h.AcksSent++
		} else if d.Due > now && d.acknowledged() == 0 {
			r.h.Held++
		}
	}
	r.h.PopsSent += int(r.waiting.Load())
}

// produce sends messages to both topics; each is sent once, whatever the answer.
func (r *popper) produce(ctx context.Context, l *link, rng *rand.Rand) {
	for !r.stopping.Load() && ctx.Err() == nil {
		c := l.get(ctx)
		if c == nil {
			return
		}
		topic := popTopic
		if rng.IntN(2) == 0 {
			topic = orderlyTopic
		}
		m := &PopSend{Id: int(r.next.Add(1)), Place: Place{topic, rng.Int32N(popQueues)}}
		content := newContent(rng, m.Id, 2000)
		content.noWait = false
		m.Digest = content.digest()
		r.h.mu.Lock()
		r.h.Messages = append(r.h.Messages, m)
		r.h.mu.Unlock()
		a, err := c.Call(header(310, m.Place, content.properties(Attempt{m.Id, 1}, 0), false).WithBody(content.body), patience)
		if err != nil {
			l.broken(c)
		} else {
			r.h.mu.Lock()
			m.Outcome = outcomeOf(a.Code)
			r.h.mu.Unlock()
		}
		pause(ctx, time.Duration(rng.IntN(3))*time.Millisecond)
	}
}

// consume pops, and acknowledges most of what comes.
func (r *popper) consume(ctx context.Context, l *link, rng *rand.Rand, orderly bool) {
	for ctx.Err() == nil {
		c := l.get(ctx)
		if c == nil {
			return
		}
		batch, ok := r.pop(c, rng, orderly)
		if !ok {
			l.broken(c)
			continue
		}
		if len(batch) == 0 {
			pause(ctx, redial)
		}
		for _, d := range batch {
			if !r.deal(c, rng, d) { // the next is told to the broker that follows
				l.broken(c)
				if c = l.get(ctx); c == nil {
					return
				}
			}
			if orderly && len(d.Acks) == 0 { // those behind it come again with it
				break
			}
		}
	}
}

// popped is a delivery with what its acknowledgement needs.
type popped struct {
	*Delivery
	handle, group string
}

// pop pops once and notes what comes; false: there was no answer.
func (r *popper) pop(c *wire.Conn, rng *rand.Rand, orderly bool) ([]popped, bool) {
	topic, group := popTopic, popGroup
	if orderly {
		topic, group = orderlyTopic, orderlyGroup
	}
	asked := time.Now().UnixMilli()
	f := wire.Request(200050, "consumerGroup", group, "topic", topic, "queueId", "-1", "maxMsgNums", strconv.Itoa(1+rng.IntN(8)),
		"invisibleTime", strconv.FormatInt(popInvisible.Milliseconds(), 10), "pollTime", "300", "bornTime", strconv.FormatInt(asked, 10), "initMode", "0",
		"order", strconv.FormatBool(orderly))
	r.waiting.Add(1)
	a, err := c.Call(f, patience)
	r.waiting.Add(-1)
	if err != nil {
		return nil, false
	}
	if a.Code != codeSuccess {
		return nil, true
	}
	messages, err := wire.Messages(a.Body)
	if err != nil {
		r.h.garble("a pop: " + err.Error())
		return nil, true
	}
	starts := map[string]string{} // by queue id
	for _, e := range strings.Split(a.Ext["startOffsetInfo"], ";") {
		if f := strings.Fields(e); len(f) == 3 && f[0] == "0" {
			starts[f[1]] = f[2]
		}
	}
	var batch []popped
	number := int(r.batch.Add(1))
	for _, m := range messages {
		queue := strconv.Itoa(int(m.QueueId))
		d := &Delivery{Place: Place{topic, m.QueueId}, Offset: m.QueueOffset, Times: int(m.ReconsumeTimes), Stored: m.StoreTimestamp, Asked: asked,
			Got: time.Now().UnixMilli(), Orderly: orderly, Batch: number}
		handle := m.Properties["POP_CK"]
		if handle == "" {
			handle = strings.Join([]string{starts[queue], a.Ext["popTime"], a.Ext["invisibleTime"], a.Ext["reviveQid"], "0", r.b.Name, queue,
				strconv.FormatInt(m.QueueOffset, 10)}, " ")
		}
		parts := strings.Fields(handle)
		if len(parts) != 8 {
			r.h.garble("a pop with the handle " + handle)
			continue
		}
		if parts[4] == "1" {
			d.Place.Topic = "%RETRY%" + group + "_" + topic
		}
		d.PopTime, _ = strconv.ParseInt(parts[1], 10, 64)
		d.Due = d.PopTime + popInvisible.Milliseconds()
		name, err := parseAttempt(m.Properties["UNIQ_KEY"])
		if err != nil {
			name.Message = -1
		}
		d.Id = name.Message
		content := content{body: m.Body, tags: m.Properties["TAGS"], keys: m.Properties["KEYS"], note: m.Properties["note"]}
		d.Digest = content.digest()
		batch = append(batch, popped{d, handle, group})
	}
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	for _, p := range batch {
		r.h.Deliveries = append(r.h.Deliveries, p.Delivery)
	}
	return batch, true
}

// deal acknowledges a message, or lets it come again, at another time perhaps. False: there was no answer.
func (r *popper) deal(c *wire.Conn, rng *rand.Rand, d popped) bool {
	what := rng.IntN(100)
	if r.stopping.Load() || d.Times > 2 {
		what = 99
	}
	switch {
	case what < 10:
		return true
	case what < 20:
		return r.tell(c, d, true, int64(300+rng.IntN(1500)))
	default:
		return r.tell(c, d, false, 0)
	}
}

// tell acknowledges a delivery, or changes its invisible time.
func (r *popper) tell(c *wire.Conn, d popped, change bool, invisible int64) bool {
	a := &PopAck{Change: change, Sent: time.Now().UnixMilli(), Answered: underWay}
	r.h.mu.Lock()
	d.Acks = append(d.Acks, a)
	before := d.Due
	if change { // from now on it may come at this time
		d.Due = min(d.Due, a.Sent+invisible)
	}
	r.h.mu.Unlock()
	f := wire.Request(200051, "consumerGroup", d.group, "topic", d.Place.Topic, "queueId", strconv.Itoa(int(d.Place.Queue)), "extraInfo", d.handle,
		"offset", strconv.FormatInt(d.Offset, 10))
	if change {
		f.Code = 200053
		f.Set("invisibleTime", strconv.FormatInt(invisible, 10))
	}
	answer, err := c.Call(f, patience)
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	a.Answered = time.Now().UnixMilli()
	if err != nil {
		return false
	}
	a.Code, a.Outcome = answer.Code, Refused
	if answer.Code == codeSuccess {
		a.Outcome = Acknowledged
		if change && !d.Orderly && a.Answered < before { // else it may have been on its way already
			d.Due = number(answer, "popTime") + invisible
		}
	}
	return true
}
