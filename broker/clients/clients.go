// Package clients knows who is connected: the members and subscriptions of each consumer group, and the
// members of each producer group. It lives on heartbeats and ends of connections and keeps nothing on disk.
// The rules are those of ConsumerManager and ProducerManager of 4.9.8 (spec/wire.md section 13).
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
}

// Member is a Client in a table, with the time of its last heartbeat.
type Member struct {
	Client
	LastUpdate time.Time
}

// SubscriptionData is one topic that a group subscribes, as its members say it.
type SubscriptionData struct {
	ClassFilterMode bool
	Topic           string
	SubString       string
	TagsSet         []string
	CodeSet         []int32
	SubVersion      int64
	ExpressionType  string
}

// ConsumerData is what a heartbeat says of one consumer group.
type ConsumerData struct {
	GroupName           string
	ConsumeType         string
	MessageModel        string
	ConsumeFromWhere    string
	SubscriptionDataSet []*SubscriptionData
	UnitMode            bool
}
