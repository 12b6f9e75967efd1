//go:build conformance

package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// unknown is a state that the two versions of the client call by different names.
const unknown = primitive.RollbackMessageState + 1

// ledger says what becomes of transactions, by body, and remembers what it was asked.
type ledger struct {
	first, later map[string]primitive.LocalTransactionState // after the send; when the broker asks

	mu     sync.Mutex
	checks []*primitive.MessageExt
}

func (l *ledger) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	return l.first[string(m.Body)]
}

func (l *ledger) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checks = append(l.checks, m)
	if state, ok := l.later[string(m.Body)]; ok {
		return state
	}
	return unknown
}

// asked are the bodies of what the broker has asked about, each once.
func (l *ledger) asked() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, m := range l.checks {
		all = append(all, string(m.Body))
	}
	return slices.Compact(sorted(all))
}

// newTransactions starts a producer of transactions, which ends with the case if not before.
func (c *cluster) newTransactions(t *testing.T, group string, l *ledger) rocketmq.TransactionProducer {
	t.Helper()
	p, err := rocketmq.NewTransactionProducer(l, producer.WithNsResolver(c.resolver()), producer.WithGroupName(group),
		producer.WithInstanceName(instance()), producer.WithRetry(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Shutdown() })
	return p
}

func transact(t *testing.T, p rocketmq.TransactionProducer, topic, body string) {
	t.Helper()
	m := primitive.NewMessage(topic, []byte(body)).WithTag("TagA").WithKeys([]string{"key"})
	r, err := p.SendMessageInTransaction(context.Background(), m)
	if err != nil || r.Status != primitive.SendOK {
		t.Fatalf("%s: %+v, %v", body, r, err)
	}
}

// Transactions that end with their send, and those that the broker has to ask about: just what was committed is received.
func TestTransactions(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "Transactions", 4)
	l := &ledger{first: map[string]primitive.LocalTransactionState{}, later: map[string]primitive.LocalTransactionState{}}
	var all, committed, open []string
	for i := range 12 {
		body := fmt.Sprint("transaction ", i)
		all = append(all, body)
		l.first[body] = []primitive.LocalTransactionState{primitive.CommitMessageState, primitive.RollbackMessageState, unknown}[i%3]
		if i%3 == 2 {
			open = append(open, body)
			l.later[body] = []primitive.LocalTransactionState{primitive.CommitMessageState, primitive.RollbackMessageState}[i%2]
		}
		if l.first[body] == primitive.CommitMessageState || i%3 == 2 && l.later[body] == primitive.CommitMessageState {
			committed = append(committed, body)
		}
	}
	p := server.newTransactions(t, "P-Transactions", l)
	for _, body := range all {
		transact(t, p, topic, body)
	}
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-Transactions", tags: "TagA", listen: in.collect})
	for _, m := range in.expect(t, committed) {
		if m.GetTags() != "TagA" || m.GetKeys() != "key" || m.GetProperty("PGROUP") != "P-Transactions" || m.SysFlag&0xC != 8 {
			t.Errorf("received %s", m)
		}
	}
	// On a busy machine others may be asked about too, before their end is here.
	eventually(t, "all open ones are asked about", func() bool {
		asked := l.asked()
		return !slices.ContainsFunc(open, func(body string) bool { return !slices.Contains(asked, body) })
	})
	for _, m := range l.checks {
		if m.Topic != topic || m.GetTags() != "TagA" || m.TransactionId == "" || m.TransactionId != m.GetProperty("UNIQ_KEY") {
			t.Errorf("asked about %s", m)
		}
	}
}

// The producer goes, and another one of its group, which comes later, is asked.
func TestTransactionOfAnother(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "TransactionOfAnother", 1)
	first := server.newTransactions(t, "P-TransactionOfAnother", &ledger{first: map[string]primitive.LocalTransactionState{"open": unknown}})
	transact(t, first, topic, "open")
	if err := first.Shutdown(); err != nil {
		t.Fatal(err)
	}
	l := &ledger{first: map[string]primitive.LocalTransactionState{"own": primitive.RollbackMessageState},
		later: map[string]primitive.LocalTransactionState{"open": primitive.CommitMessageState}}
	second := server.newTransactions(t, "P-TransactionOfAnother", l)
	transact(t, second, topic, "own") // so that it knows the broker, which it tells its group with the next heartbeat
	var in inbox
	server.newPush(t, subscription{topic: topic, group: "G-TransactionOfAnother", listen: in.collect})
	in.expect(t, []string{"open"})
	if got := l.asked(); !slices.Equal(got, []string{"open"}) {
		t.Errorf("asked about %q", got)
	}
}
