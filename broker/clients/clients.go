// Package clients knows who is connected: the members and subscriptions of each consumer group, and the
// members of each producer group. It lives on heartbeats and ends of connections and keeps nothing on disk.
// The rules are those of ConsumerManager and ProducerManager of 4.9.8.
package clients

import (
	"time"

	"rocketd/protocol"
	"rocketd/remoting"
)

// Expiry is how long a client stays without a heartbeat; the broker scans every ScanPeriod.
const (
	Expiry     = 120 * time.Second
	ScanPeriod = 10 * time.Second
)

// Client is one member: a connection and what it said of itself.
type Client struct {
	Conn     *remoting.Conn
	ClientId string
	Language protocol.Language
	Version  int32

	AccessKey string // of the account that sent its last heartbeat; "" = none, or nobody looks at accounts
}

// Member is a Client in a table, with the time of its last heartbeat.
type Member struct {
	Client
	LastUpdate time.Time
	size       int64 // bytes that it was counted with
}
