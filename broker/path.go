package broker

import (
	"context"

	"rocketd/remoting"
	"rocketd/store"
)

// messagePath is what the message path owns in a broker beside the store: held pulls, delayed messages.
type messagePath struct{}

// openPath makes the message path's parts; the tables are open, the store is not. Called by New.
func (b *Broker) openPath() error { return nil }

// startPath starts them; the store has started, the ports are not open yet. Called by Start.
func (b *Broker) startPath() error { return nil }

// answerHeld answers every held pull with PULL_NOT_FOUND and its own offset as nextBeginOffset, and holds none
// from now on. Called by Close, before the ports close.
func (b *Broker) answerHeld(ctx context.Context) {}

// closePath ends the message path's goroutines and saves its state; the store is still open. Called by Close.
func (b *Broker) closePath() error { return nil }

// arrive is the store's Arrive: a message can be pulled now.
func (b *Broker) arrive(a store.Arrival) {}

// deliverTime is the store's DeliverTime: when a delayed message is due (ms).
func (b *Broker) deliverTime(level int, storeTimestamp int64) int64 { return storeTimestamp }

// pathClosed is told that a connection has ended.
func (b *Broker) pathClosed(conn *remoting.Conn) {}

// delayStats adds scheduleMessageOffset_<level> = "delivered,max" for every level that has an offset
// (GET_BROKER_RUNTIME_INFO).
func (b *Broker) delayStats(add func(key, value string)) {}

// delayOffsets is the body of GET_ALL_DELAY_OFFSET.
func (b *Broker) delayOffsets() ([]byte, error) { return nil, nil }

// messageRoutes adds the routes of the message path.
func (b *Broker) messageRoutes(m *remoting.Mux) {}
