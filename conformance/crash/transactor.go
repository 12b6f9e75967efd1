package crash

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// transactionGroup is the producer group of all transactions.
const transactionGroup = "CrashTransactions"

// transactionConf has half messages checked soon and often, and none given up.
var transactionConf = map[string]string{"transactionCheckInterval": "500", "transactionTimeOut": "300", "transactionCheckMax": "100000"}

// transactor is a run of transactions under way.
type transactor struct {
	h     *TransactionHistory
	b     *target.Broker
	admin link
	queue []Place // of the messages

	next     atomic.Int64
	byId     sync.Map // int → *Transaction
	checks   chan asked
	stopping atomic.Bool // no new transactions
	last     atomic.Bool // the broker is not killed any more: undecided ones are decided
}

// asked is a check in hand.
type asked struct {
	t *Transaction
	k TransactionCheck
}

// There are so many producers, and so many goroutines that answer checks.
const (
	transactors = 6
	answerers   = 8
)

// RunTransactions loads a broker that has just been started with s.Conf and transactionConf with transactions, kills it
// again and again, waits until all are ended, and reads everything. Then the broker runs.
func RunTransactions(ctx context.Context, b *target.Broker, s Settings) (*TransactionHistory, error) {
	r := &transactor{h: &TransactionHistory{History: NewHistory()}, b: b, admin: link{addr: b.Addr}, checks: make(chan asked, 1<<16)}
	defer r.admin.close()
	if err := makeTopic(ctx, &r.admin, "CrashTransaction", 2); err != nil {
		return nil, err
	}
	for q := range int32(2) {
		r.queue = append(r.queue, Place{"CrashTransaction", q})
	}
	readers, stopReading := context.WithCancel(ctx)
	defer stopReading()
	var producing, rest sync.WaitGroup
	for i := range transactors {
		l := r.link(i)
		defer l.close()
		producing.Go(func() { r.produce(ctx, l, newRand(s.Seed, 300+uint64(i))) })
	}
	for i := range answerers {
		l := r.link(transactors + i)
		defer l.close()
		rest.Go(func() { r.answer(readers, l) })
	}
	for i, p := range r.queue {
		l := &link{addr: b.Addr}
		defer l.close()
		f := &follower{h: r.h.History, place: p, link: l, rng: newRand(s.Seed, 400+uint64(i))}
		rest.Go(func() { _ = f.run(readers) })
	}
	err := killAgain(ctx, b, s, newRand(s.Seed, 0), hooks{before: r.met, killed: r.h.kill})
	r.h.mu.Lock()
	r.h.Restarted = time.Now().UnixMilli()
	r.h.mu.Unlock()
	r.stopping.Store(true)
	r.last.Store(true)
	producing.Wait()
	if err == nil {
		err = r.settle(ctx)
	}
	stopReading()
	rest.Wait()
	for _, p := range append([]Place{halfPlace}, r.queue...) {
		if err == nil {
			err = readAtEnd(ctx, r.h.History, &r.admin, p)
		}
	}
	return r.h, err
}

// makeTopic makes a topic.
func makeTopic(ctx context.Context, l *link, topic string, queues int) error {
	n := strconv.Itoa(queues)
	answer, err := l.call(ctx, wire.Request(17, "topic", topic, "defaultTopic", "TBW102", "readQueueNums", n, "writeQueueNums", n, "perm", "6",
		"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"))
	if err == nil && answer.Code != codeSuccess {
		err = errors.New("topic " + topic + ": " + answer.Remark)
	}
	return err
}

// link is a connection of a member of the producer group, which takes checks.
func (r *transactor) link(i int) *link {
	return &link{addr: r.b.Addr, hello: wire.ProducerHeartbeat("crash-"+strconv.Itoa(i), transactionGroup), told: r.asked}
}

// met counts what a kill has met.
func (r *transactor) met() {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	for _, t := range r.h.Transactions {
		switch last := len(t.Ends) - 1; {
		case t.Outcome == Unanswered && len(t.Checks) == 0:
			if t.Offset == underWay {
				r.h.HalfSent++
			}
		case last < 0:
			r.h.Open++
		case t.Ends[last].Answered == underWay:
			r.h.EndSent++
		}
	}
}

// underWay stands for what only the answer tells as long as it may come.
const underWay = -1

// produce sends half messages, and ends those that are to be ended at once.
func (r *transactor) produce(ctx context.Context, l *link, rng *rand.Rand) {
	for !r.stopping.Load() && ctx.Err() == nil {
		c := l.get(ctx)
		if c == nil {
			return
		}
		t := &Transaction{Id: int(r.next.Add(1)), Place: r.queue[rng.IntN(len(r.queue))], Offset: underWay}
		switch n := rng.IntN(100); {
		case n < 45:
			t.Plan = CommitAtOnce
		case n < 75:
			t.Plan = RollbackAtOnce
		case n < 85:
			t.Plan = CommitAsked
		case n < 95:
			t.Plan = RollbackAsked
		default:
			t.Plan = Undecided
		}
		content := newContent(rng, t.Id, 10_000)
		content.noWait = false
		if len(content.body) == 0 { // the official server can't check such a one, and no client sends it
			content.body = []byte{0}
		}
		t.Digest = content.digest()
		r.byId.Store(t.Id, t)
		r.h.mu.Lock()
		r.h.Transactions = append(r.h.Transactions, t)
		r.h.mu.Unlock()
		if !r.half(c, t, &content) {
			l.broken(c)
			continue
		}
		if t.Plan <= RollbackAtOnce && t.Outcome == Acknowledged {
			if !r.end(c, t, t.Offset, t.PhyOffset, t.Plan.commits(), false, rng.IntN(5) == 0) {
				l.broken(c)
			}
		}
		pause(ctx, time.Duration(rng.IntN(6))*time.Millisecond)
	}
}

// half sends a half message and notes its answer; false: there was none.
func (r *transactor) half(c *wire.Conn, t *Transaction, content *content) bool {
	properties := wire.Properties("TRAN_MSG", "true", "PGROUP", transactionGroup) + "\x02" + content.properties(Attempt{t.Id, 1}, 0)
	f := header(310, t.Place, properties, false).Set("a", transactionGroup).Set("f", "4").WithBody(content.body)
	a, err := c.Call(f, patience)
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	t.Offset = 0
	if err != nil {
		return false
	}
	if t.Outcome = outcomeOf(a.Code); t.Outcome == Acknowledged {
		t.Offset, t.PhyOffset = number(a, "queueOffset"), phyOffset(a.Ext["msgId"])
	}
	return true
}

// end ends a transaction and notes the answer; false: there was none where one was wanted.
func (r *transactor) end(c *wire.Conn, t *Transaction, offset, phyOffset int64, commit, check, oneway bool) bool {
	e := &TransactionEnd{Commit: commit, Offset: offset, PhyOffset: phyOffset, Answered: underWay}
	r.h.mu.Lock()
	t.Ends = append(t.Ends, e)
	r.h.mu.Unlock()
	state := wire.Rollback
	if commit {
		state = wire.Commit
	}
	f := wire.End(transactionGroup, strconv.FormatInt(offset, 10), strconv.FormatInt(phyOffset, 10), state, check)
	var a *wire.Frame
	var err error
	if oneway { // as clients do; nobody knows what becomes of it
		f.Flag |= wire.FlagOneway
		_, err = c.Send(f)
	} else {
		a, err = c.Call(f, patience)
	}
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	e.Answered = time.Now().UnixMilli()
	if a == nil {
		return err == nil
	}
	e.Code, e.Outcome = a.Code, Refused
	if a.Code == codeSuccess {
		e.Outcome = Acknowledged
	}
	return true
}

// asked notes a check and hands it on: it is called by who reads the connection.
func (r *transactor) asked(f *wire.Frame) {
	if f.Code != 39 {
		return
	}
	at := TransactionCheck{At: time.Now().UnixMilli(), Offset: number(f, "tranStateTableOffset"), PhyOffset: number(f, "commitLogOffset")}
	ms, err := wire.Messages(f.Body)
	if err != nil || len(ms) != 1 {
		r.h.garble("a check with a body that is no message")
		return
	}
	a, err := parseAttempt(ms[0].Properties["UNIQ_KEY"])
	found, ok := r.byId.Load(a.Message)
	if err != nil || !ok {
		r.h.garble("a check of " + ms[0].Properties["UNIQ_KEY"])
		return
	}
	t := found.(*Transaction)
	r.h.mu.Lock()
	t.Checks = append(t.Checks, at)
	r.h.mu.Unlock()
	select {
	case r.checks <- asked{t, at}:
	default: // it will be asked again
	}
}

// answer ends the transactions that are asked about, as they are planned.
func (r *transactor) answer(ctx context.Context, l *link) {
	for {
		var k asked
		select {
		case <-ctx.Done():
			return
		case k = <-r.checks:
		}
		c := l.get(ctx)
		if c == nil {
			return
		}
		if r.endedMeanwhile(k) {
			continue
		}
		if k.t.Plan == Undecided && !r.last.Load() {
			f := wire.End(transactionGroup, strconv.FormatInt(k.k.Offset, 10), strconv.FormatInt(k.k.PhyOffset, 10), wire.Unknown, true)
			f.Flag |= wire.FlagOneway
			if _, err := c.Send(f); err != nil {
				l.broken(c)
			}
			continue
		}
		if !r.end(c, k.t, k.k.Offset, k.k.PhyOffset, k.t.Plan.commits(), true, false) {
			l.broken(c)
		}
	}
}

// endedMeanwhile tells whether a transaction is just being ended, or has been since it was asked about: who ends it knows.
func (r *transactor) endedMeanwhile(k asked) bool {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	for _, e := range k.t.Ends {
		if e.Answered == underWay || e.Outcome == Acknowledged && e.Answered >= k.k.At {
			return true
		}
	}
	return false
}

// settle waits until the broker has passed all half messages, which it does when all are ended.
func (r *transactor) settle(ctx context.Context) error {
	for deadline := r.h.now() + 2*deliveryPatience; r.h.now() < deadline; {
		end, err := r.admin.call(ctx, halfPlace.ask(30))
		if err != nil {
			return err
		}
		at, err := r.admin.call(ctx, halfPlace.ask(14, "consumerGroup", "CID_RMQ_SYS_TRANS"))
		if err != nil {
			return err
		}
		if r.open() == 0 && number(end, "offset") == number(at, "offset") {
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil // the verdict says what is missing
}

// open counts the transactions whose half message was acknowledged and that nobody has tried to end.
func (r *transactor) open() (n int) {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	for _, t := range r.h.Transactions {
		if t.Outcome == Acknowledged && len(t.Ends) == 0 {
			n++
		}
	}
	return n
}
