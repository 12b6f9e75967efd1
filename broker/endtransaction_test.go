package broker

import (
	"fmt"
	"math/rand"
	"strconv"
	"testing"
	"time"

	"rocketd/broker/topics"
	"rocketd/broker/transaction"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting/remotingtest"
	"rocketd/store"
	"rocketd/store/vfs"
)

const tran = "TRAN_MSG=true|PGROUP=TPG|UNIQ_KEY=u1|WAIT=true|TAGS=TagA"

// half sends a half message and returns what its producer ends it with.
func (p *pathBroker) half(topic string, queueId int32, properties, body string) *header.EndTransactionRequest {
	p.tb.Helper()
	a := p.send(topic, queueId, properties, body)
	_, at, err := message.ParseOffsetMsgId(field(p.tb, a, "msgId"))
	if err != nil {
		p.tb.Fatal(err)
	}
	offset, _ := strconv.ParseInt(field(p.tb, a, "queueOffset"), 10, 64)
	return &header.EndTransactionRequest{ProducerGroup: "TPG", TranStateTableOffset: offset, CommitLogOffset: at,
		CommitOrRollback: message.TransactionCommit, MsgId: "u1"}
}

// end changes how a transaction is ended.
func end(h *header.EndTransactionRequest, change func(*header.EndTransactionRequest)) *header.EndTransactionRequest {
	c := *h
	change(&c)
	return &c
}

// at is the message of a queue that consumers may not pull.
func (p *pathBroker) at(topic string, offset int64) message.Message {
	p.tb.Helper()
	remotingtest.Eventually(p.tb, fmt.Sprintf("%s has message %d", topic, offset), func() bool { return p.store.MaxOffset(topic, 0) > offset })
	e, _ := p.store.Entry(topic, 0, offset)
	m, err := p.store.Message(e.PhyOffset)
	if err != nil {
		p.tb.Fatal(err)
	}
	return m
}

// TestCommit: the three records of a transaction have the form of the official broker, as TransactionalMessageBridge and EndTransactionProcessor of 4.9.8 make them.
func TestCommit(t *testing.T) {
	b := startPathBroker(t, nil)
	b.send("TopicA", 1, "", "before")
	h := sendHeader("TopicA", 1, "KEYS=k|"+tran+"|REAL_QID=9|CLUSTER=X")
	h.SysFlag = message.TransactionPrepared | message.Compressed
	a := b.ask(protocol.SendMessageV2, h, []byte("hello"))
	check(t, "half message", a, protocol.Success, "", sendFields...)
	if q, o := field(t, a, "queueId"), field(t, a, "queueOffset"); q != "1" || o != "0" {
		t.Errorf("answered queue %s, offset %s", q, o)
	}
	half := b.at(topics.TransHalf, 0)
	want := "KEYS=k|" + tran + "|CLUSTER=DefaultCluster|REAL_TOPIC=TopicA|REAL_QID=1"
	if plain(half.Properties) != want || half.SysFlag != message.Compressed || half.Flag != 7 || string(half.Body) != "hello" {
		t.Errorf("half message: %+v", half)
	}
	if b.store.MaxOffset("TopicA", 1) != 1 {
		t.Error("the half message is in its real queue")
	}
	_, at, _ := message.ParseOffsetMsgId(field(t, a, "msgId"))
	commit := &header.EndTransactionRequest{ProducerGroup: "TPG", CommitLogOffset: at, CommitOrRollback: message.TransactionCommit, MsgId: "u1"}
	check(t, "commit", b.ask(protocol.EndTransaction, commit, nil), protocol.Success, "")
	m := b.stored("TopicA", 1, 1, 2)[0]
	if plain(m.Properties) != want || m.SysFlag != message.Compressed|message.TransactionCommit || m.PreparedTransactionOffset != at || m.Flag != 7 ||
		string(m.Body) != "hello" || m.BornTimestamp != half.BornTimestamp || m.BornHost != half.BornHost {
		t.Errorf("committed: %+v", m)
	}
	op := b.at(topics.TransOpHalf, 0)
	if plain(op.Properties) != "WAIT=true|TAGS=d" || string(op.Body) != "0" || op.SysFlag != 0 || op.BornHost != b.storeHost() {
		t.Errorf("op: %+v", op)
	}
	if r, err := b.store.Record(op.PhyOffset); err != nil || r.PhyOffset() < m.PhyOffset {
		t.Errorf("the op lies before the message: %v", err)
	}
}

// TestEndTransaction: the checks of EndTransactionProcessor, in its order, with its remarks.
func TestEndTransaction(t *testing.T) {
	b := startPathBroker(t, nil)
	normal := b.half("TopicA", 0, "PGROUP=TPG", "normal")
	first := b.half("TopicA", 0, tran, "one")
	second := b.half("TopicA", 0, tran, "two")
	type H = header.EndTransactionRequest
	for _, c := range []struct {
		name   string
		h      *header.EndTransactionRequest
		code   protocol.ResponseCode
		remark string
	}{
		{"no half message", normal, 1, "Find prepared transaction message failed"},
		{"no message there", end(first, func(h *H) { h.CommitLogOffset++ }), 1, "Find prepared transaction message failed"},
		{"nothing there", end(first, func(h *H) { h.CommitLogOffset = -1 }), 1, "Find prepared transaction message failed"},
		{"far away", end(first, func(h *H) { h.CommitLogOffset = -1 << 63 }), 1, "Find prepared transaction message failed"},
		{"rollback of none", end(first, func(h *H) { h.CommitLogOffset, h.CommitOrRollback = 1<<40, message.TransactionRollback }), 1, "Find prepared transaction message failed"},
		{"another group", end(first, func(h *H) { h.ProducerGroup = "Other" }), 1, "The producer group wrong"},
		{"another queue offset", end(first, func(h *H) { h.TranStateTableOffset++ }), 1, "The transaction state table offset wrong"},
		{"another's place", end(first, func(h *H) { h.CommitLogOffset = second.CommitLogOffset }), 1, "The transaction state table offset wrong"},
	} {
		before := b.store.MaxPhyOffset()
		check(t, c.name, b.ask(protocol.EndTransaction, c.h, nil), c.code, c.remark)
		if b.store.MaxPhyOffset() != before {
			t.Errorf("%s: something was stored", c.name)
		}
	}
	check(t, "no fields", b.ask(protocol.EndTransaction, nil, nil), 1, "header field tranStateTableOffset is missing")

	// A state that is none is refused; unknown is not answered, the rollback behind it is.
	for _, state := range []int32{4, 1, -1} {
		check(t, "state", b.ask(protocol.EndTransaction, end(first, func(h *H) { h.CommitOrRollback = state }), nil), 1, "commitOrRollback field wrong")
	}
	for _, checked := range []bool{false, true} {
		b.peer.Send(b.request(protocol.EndTransaction, end(first, func(h *H) { h.CommitOrRollback, h.FromTransactionCheck = message.TransactionNot, checked }), nil))
	}
	check(t, "rollback", b.ask(protocol.EndTransaction, end(first, func(h *H) { h.CommitOrRollback = message.TransactionRollback }), nil), protocol.Success, "not set any response code")
	if op := b.at(topics.TransOpHalf, 0); string(op.Body) != "0" {
		t.Errorf("op of the rollback: %q", op.Body)
	}
	if b.store.MaxOffset("TopicA", 0) != 1 {
		t.Error("a message that was rolled back is visible")
	}
	// Oneway, from a check, pipelined with another end: as clients do.
	rollback := b.request(protocol.EndTransaction, end(first, func(h *H) { h.CommitOrRollback = message.TransactionRollback }), nil)
	commit := b.request(protocol.EndTransaction, end(second, func(h *H) { h.FromTransactionCheck = true }), nil)
	commit.Flag |= protocol.FlagOneway
	b.peer.Send(commit, rollback)
	if a := b.peer.Receive(); a.Opaque != rollback.Opaque || a.Code != 0 {
		t.Errorf("got %+v", a)
	}
	if m := b.stored("TopicA", 0, 1, 2)[0]; string(m.Body) != "two" {
		t.Errorf("committed: %q", m.Body)
	}
	// A half message that names a topic nobody may send to, as only a forged one can.
	forged := b.half("TopicA", 0, "PGROUP=TPG|REAL_TOPIC=RMQ_SYS_TRANS_OP_HALF_TOPIC|REAL_QID=0|TAGS=d", "0")
	check(t, "resume", b.ask(protocol.ResumeCheckHalfMessage, &header.ResumeCheckHalfMessageRequest{MsgId: message.OffsetMsgId(b.storeHost(), forged.CommitLogOffset)}, nil), protocol.Success, "")
	m := b.at(topics.TransHalf, 2)
	check(t, "forged", b.ask(protocol.EndTransaction, end(second, func(h *H) { h.CommitLogOffset, h.TranStateTableOffset = m.PhyOffset, 2 }), nil), 13, "The message is illegal, maybe msg body or properties length not matched. msg body length limit 4194304B, msg properties length limit 32KB.")
}

// TestEndBeforeFlush: with sync flush an end finds a half message that is not durable yet.
func TestEndBeforeFlush(t *testing.T) {
	b := startPathBroker(t, func(c *Config) { c.FlushDiskType = store.SyncFlush })
	b.send("TopicA", 0, "", "before")
	const n = 20
	for i := range int64(n) {
		h := sendHeader("TopicA", 0, "TRAN_MSG=true|PGROUP=TPG|WAIT=false")
		commit := &header.EndTransactionRequest{ProducerGroup: "TPG", TranStateTableOffset: i, CommitLogOffset: b.store.MaxPhyOffset(),
			CommitOrRollback: message.TransactionCommit, MsgId: "u1"}
		b.peer.Send(b.request(protocol.SendMessage, h, []byte("x")), b.request(protocol.EndTransaction, commit, nil))
		for range 2 {
			if a := b.peer.Receive(); a.Code != 0 {
				t.Fatalf("transaction %d: %+v", i, a)
			}
		}
	}
	b.stored("TopicA", 0, n, n+1)
}

func TestEndTransactionOfSlave(t *testing.T) {
	b := startPathBroker(t, nil)
	h := b.half("TopicA", 0, tran, "x")
	cfg := b.Config()
	cfg.BrokerRole = store.Slave
	b.cfg.Store(&cfg)
	check(t, "slave", b.ask(protocol.EndTransaction, h, nil), protocol.SlaveNotAvailable, "not set any response code")
}

// TestHalfMessageConfig: rejectTransactionMessage refuses half messages; a maximum that was lowered meanwhile keeps none from
// being committed.
func TestHalfMessageConfig(t *testing.T) {
	b := startPathBroker(t, nil)
	h := b.half("TopicA", 0, tran, "larger than allowed later")
	cfg := b.Config()
	cfg.RejectTransactionMessage, cfg.MaxMessageSize = true, 3
	b.cfg.Store(&cfg)
	b.store.SetConfig(&cfg.Config)
	check(t, "half message", b.ask(protocol.SendMessage, sendHeader("TopicA", 0, tran), []byte("x")), 16,
		"the broker[127.0.0.1] sending transaction message is forbidden", "MSG_REGION", "TRACE_ON")
	check(t, "commit", b.ask(protocol.EndTransaction, h, nil), protocol.Success, "")
	if m := b.stored("TopicA", 0, 0, 1)[0]; string(m.Body) != "larger than allowed later" {
		t.Errorf("committed: %q", m.Body)
	}
}

// TestDelayedTransaction: the delay counts from the commit on.
func TestDelayedTransaction(t *testing.T) {
	t.Parallel()
	b := startPathBroker(t, func(c *Config) { c.MessageDelayLevel = "1s 5s" })
	b.send("TopicA", 0, "", "before")
	h := b.half("TopicA", 0, "DELAY=1|"+tran, "later")
	if m := b.at(topics.TransHalf, 0); string(m.Body) != "later" || b.store.MaxOffset(topics.Schedule, 0) != 0 {
		t.Fatalf("half message: %+v", m)
	}
	check(t, "commit", b.ask(protocol.EndTransaction, h, nil), protocol.Success, "")
	if m := b.at(topics.Schedule, 0); m.SysFlag != message.TransactionCommit {
		t.Errorf("waiting: %+v", m)
	}
	m := b.stored("TopicA", 0, 1, 2)[0]
	if _, half := m.Property("TRAN_MSG"); half || string(m.Body) != "later" {
		t.Errorf("delivered: %+v", m)
	}
}

func TestResumeCheck(t *testing.T) {
	b := startPathBroker(t, nil)
	h := b.half("TopicA", 0, tran+"|TRANSACTION_CHECK_TIMES=15", "x")
	const broken = "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC."
	for _, id := range []string{"", "x", message.OffsetMsgId(b.storeHost(), h.CommitLogOffset+1)} {
		check(t, id, b.ask(protocol.ResumeCheckHalfMessage, &header.ResumeCheckHalfMessageRequest{MsgId: id}, nil), 1, broken)
	}
	id := message.OffsetMsgId(b.storeHost(), h.CommitLogOffset)
	check(t, "resume", b.ask(protocol.ResumeCheckHalfMessage, &header.ResumeCheckHalfMessageRequest{MsgId: id}, nil), protocol.Success, "")
	m := b.at(topics.TransHalf, 1)
	if times, _ := m.Property("TRANSACTION_CHECK_TIMES"); times != "0" || string(m.Body) != "x" || m.Flag != 7 {
		t.Errorf("put back: %+v", m)
	}
}

// TestCheckSettings: the checks heed the configuration's four keys, in their units, and their changes.
func TestCheckSettings(t *testing.T) {
	b := startPathBroker(t, nil)
	settings := b.checkOptions().Settings
	if got, want := settings(), (transaction.Settings{Interval: time.Minute, TimeOut: 6 * time.Second, CheckMax: 15, Reserved: 72 * time.Hour}); got != want {
		t.Errorf("by default %+v, want %+v", got, want)
	}
	cfg := b.Config()
	cfg.TransactionCheckInterval, cfg.TransactionTimeOut, cfg.TransactionCheckMax, cfg.FileReservedTime = 7, 8, 9, 10
	b.cfg.Store(&cfg)
	if got, want := settings(), (transaction.Settings{Interval: 7 * time.Millisecond, TimeOut: 8 * time.Millisecond, CheckMax: 9, Reserved: 10 * time.Hour}); got != want {
		t.Errorf("changed %+v, want %+v", got, want)
	}
}

// soon has half messages checked at once.
func soon(c *Config) {
	c.TransactionCheckInterval, c.TransactionTimeOut, c.FileReservedTime = 100, 0, 1<<20
}

// producer registers a peer as the producer of transactions.
func (p *pathBroker) producer(peer *remotingtest.Peer, clientId string) {
	p.tb.Helper()
	data, err := compat.Marshal(&body.HeartbeatData{ClientID: clientId, ProducerDataSet: []body.ProducerData{{GroupName: "TPG"}}})
	if err != nil {
		p.tb.Fatal(err)
	}
	peer.Send(p.request(protocol.HeartBeat, nil, data))
	if a := peer.Receive(); a.Code != 0 {
		p.tb.Fatalf("heartbeat: %+v", a)
	}
}

// checked receives a check and returns what ends the transaction that it asks about.
func checked(tb testing.TB, peer *remotingtest.Peer) (*header.EndTransactionRequest, message.Message) {
	tb.Helper()
	a := peer.Receive()
	if a.Code != int32(protocol.CheckTransactionState) || !a.IsOneway() {
		tb.Fatalf("got %+v", a)
	}
	m, _, err := message.Parse(a.Body)
	if err != nil {
		tb.Fatal(err)
	}
	number := func(key string) int64 {
		n, err := strconv.ParseInt(field(tb, a, key), 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		return n
	}
	if m.QueueOffset != number("tranStateTableOffset") || m.PhyOffset != number("commitLogOffset") || m.OffsetMsgId() != field(tb, a, "offsetMsgId") ||
		field(tb, a, "msgId") != "u1" || field(tb, a, "transactionId") != "u1" {
		tb.Errorf("check %v of %+v", a.Fields, m)
	}
	return &header.EndTransactionRequest{ProducerGroup: "TPG", TranStateTableOffset: m.QueueOffset, CommitLogOffset: m.PhyOffset,
		CommitOrRollback: message.TransactionCommit, FromTransactionCheck: true, MsgId: "u1"}, m
}

// TestCheckedTransaction: the producer dies before it ends the transaction, and the broker before the check; another instance of the
// group is asked by the broker that follows, and commits.
func TestCheckedTransaction(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]func(*vfs.Mem) *vfs.Mem{ // of the disk
		"stopped": func(m *vfs.Mem) *vfs.Mem { return m }, "killed": (*vfs.Mem).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			b := startPathBroker(t, nil)
			b.half("TopicA", 2, tran, "open")
			done := b.half("TopicA", 2, tran, "done")
			check(t, "rollback", b.ask(protocol.EndTransaction, end(done, func(h *header.EndTransactionRequest) { h.CommitOrRollback = message.TransactionRollback }), nil), protocol.Success, "not set any response code")
			fs := left(b.fs)
			b.close()
			b = startPathBrokerOn(t, fs, soon)
			b.producer(b.peer, "second")
			h, m := checked(t, b.peer)
			if m.Topic != "TopicA" || m.QueueId != 2 || string(m.Body) != "open" {
				t.Errorf("asked about %+v", m)
			}
			commit := b.request(protocol.EndTransaction, h, nil)
			commit.Flag |= protocol.FlagOneway
			b.peer.Send(commit)
			b2 := &pathBroker{Broker: b.Broker, tb: t, peer: b.dial(), next: 1000}
			if m := b2.stored("TopicA", 2, 0, 1)[0]; string(m.Body) != "open" {
				t.Errorf("committed: %q", m.Body)
			}
		})
	}
}

// TestKillBetweenMessageAndOp: the message of a commit is stored and its op is not: the half message looks open, and the check
// resolves it.
func TestKillBetweenMessageAndOp(t *testing.T) {
	t.Parallel()
	b := startPathBroker(t, nil)
	h := b.half("TopicA", 0, tran, "x")
	e := &ending{req: h, half: b.at(topics.TransHalf, 0)}
	if err := b.prepareFinal(e); err != nil {
		t.Fatal(err)
	}
	b.store.Put([]*store.Put{{Message: &e.final, Copy: true}})
	fs := b.fs.Kill()
	b.close()
	b = startPathBrokerOn(t, fs, soon)
	b.producer(b.peer, "again")
	ended, _ := checked(t, b.peer)
	rollback := b.request(protocol.EndTransaction, end(ended, func(h *header.EndTransactionRequest) { h.CommitOrRollback = message.TransactionRollback }), nil)
	rollback.Flag |= protocol.FlagOneway
	b.peer.Send(rollback)
	remotingtest.Eventually(t, "the places are at the ends", func() bool {
		half, _ := b.offsets.Query(message.GroupSystemTrans, topics.TransHalf, 0)
		op, _ := b.offsets.Query(message.GroupSystemTrans, topics.TransOpHalf, 0)
		return half == b.store.MaxOffset(topics.TransHalf, 0) && op == b.store.MaxOffset(topics.TransOpHalf, 0) && op > 0
	})
	if b.store.MaxOffset("TopicA", 0) != 1 {
		t.Error("not one message")
	}
}

// TestPowerFailsDuringChecks: the power fails while half messages are checked again and again, with nothing flushed but what asks for it.
// Whatever is left of the disk, no half message that was durable is forgotten.
func TestPowerFailsDuringChecks(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewSource(1))
	lazy := func(c *Config) {
		soon(c)
		c.TransactionCheckMax, c.FlushConsumerOffsetInterval = 1000, 100
	}
	b := startPathBroker(t, lazy)
	const open = 5
	for i := range open {
		b.half("TopicA", 0, tran, fmt.Sprint("half ", i))
	}
	for turn := range 4 {
		at, _ := b.offsets.Query(message.GroupSystemTrans, topics.TransHalf, 0)
		remotingtest.Eventually(t, "two rounds", func() bool {
			now, _ := b.offsets.Query(message.GroupSystemTrans, topics.TransHalf, 0)
			return now >= at+2*open
		})
		fs := b.fs.Crash(turn*30, rng)
		b.close()
		b = startPathBrokerOn(t, fs, lazy)
	}
	b.producer(b.peer, "late")
	seen := map[string]bool{}
	for len(seen) < open {
		_, m := checked(t, b.peer)
		seen[string(m.Body)] = true
	}
}

// TestPowerFailsAfterCommit: nobody waits for a commit to be durable, but the half message is (sync flush). Whatever is left of
// the commit, the message is there, or the producer is asked and commits again.
func TestPowerFailsAfterCommit(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewSource(2))
	for _, percent := range []int{0, 30, 60, 100} {
		sync := func(c *Config) {
			soon(c)
			c.TransactionCheckInterval, c.FlushDiskType = 3_600_000, store.SyncFlush
		}
		b := startPathBroker(t, sync)
		h := b.half("TopicA", 0, tran, "x")
		check(t, "commit", b.ask(protocol.EndTransaction, h, nil), protocol.Success, "")
		fs := b.fs.Crash(percent, rng)
		b.close()
		b = startPathBrokerOn(t, fs, func(c *Config) { sync(c); c.TransactionCheckInterval = 100 })
		b.producer(b.peer, "again")
		remotingtest.Eventually(t, "the message is committed", func() bool {
			if _, err := b.peer.TryReceive(50 * time.Millisecond); err == nil {
				at := b.store.MaxOffset(topics.TransHalf, 0) - 1
				m := b.at(topics.TransHalf, at)
				commit := b.request(protocol.EndTransaction, end(h, func(h *header.EndTransactionRequest) { h.TranStateTableOffset, h.CommitLogOffset = at, m.PhyOffset }), nil)
				commit.Flag |= protocol.FlagOneway
				b.peer.Send(commit)
			}
			return b.store.MaxOffset("TopicA", 0) > 0
		})
		b.close()
	}
}
