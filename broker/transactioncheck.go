package broker

import (
	"errors"
	"net/netip"

	"rocketd/broker/clients"
	"rocketd/broker/topics"
	"rocketd/broker/transaction"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting"
	"rocketd/store"
)

// checkOptions is what the checks of half messages get from the broker.
func (b *Broker) checkOptions() transaction.Options {
	return transaction.Options{
		Store: b.store, Clock: b.clock, Log: b.log,
		Settings: func() transaction.Settings {
			cfg := b.config()
			return transaction.Settings{
				Interval: compat.Millis(cfg.TransactionCheckInterval),
				TimeOut:  compat.Millis(cfg.TransactionTimeOut),
				CheckMax: cfg.TransactionCheckMax,
				Reserved: cfg.ReservedTime(),
			}
		},
		Master: func() bool { return b.config().BrokerRole != store.Slave },
		Place:  func(topic string) (int64, bool) { return b.offsets.Query(message.GroupSystemTrans, topic, 0) },
		SetPlace: func(topic string, offset int64) {
			b.offsets.Commit(itself{b}, message.GroupSystemTrans, topic, 0, offset)
		},
		Topic: func(name string) {
			if _, created := b.topics.CreateBySendBack(name, 1, topics.PermRead|topics.PermWrite, 0); created {
				b.topics.Saved(nil)
			}
		},
		Ask:    b.askProducer,
		Stored: func(p *store.Put) { b.stats.put(1, 1, int64(p.Size), 0) },
		// As TransactionalMessageBridge of 4.9.8: what the broker itself reads counts as got by its group.
		Read: func(topic string, messages, bytes int64) {
			b.traffic.Get(message.GroupSystemTrans, topic, messages, bytes)
		},
	}
}

// askProducer asks a member of a producer group about a half message (39), one member after the other. What it says
// comes as END_TRANSACTION.
func (b *Broker) askProducer(group string, h *header.CheckTransactionStateRequest, body []byte) (busy bool) {
	topic := message.Record(body).Topic()
	conn := b.producers.Next(group, func(m *clients.Client) bool { return b.mayCommit(m, topic) })
	if conn == nil {
		if b.notices.due("transactions of "+group, b.clock()) {
			b.log.Warn("a producer group has half messages and no member that could be asked about them", "group", group)
		}
		return false
	}
	err := conn.Oneway(protocol.NewRequest(protocol.CheckTransactionState, h, body))
	if err != nil {
		b.log.Debug("transaction check not sent", "group", group, "client", conn.RemoteAddr(), "err", err)
	}
	return errors.Is(err, remoting.ErrQueueFull)
}

// itself is the broker as who commits an offset.
type itself struct{ b *Broker }

// RemoteAddr is its own address.
func (i itself) RemoteAddr() netip.AddrPort { return i.b.storeHost() }
