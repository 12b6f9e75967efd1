package filter

import (
	"rocketd/protocol/message"
)

// Consumer is what a consumer group's heartbeats have said of one topic that it subscribes by an expression:
// ConsumerFilterData of 4.9.8, in the form of consumerFilter.json. A Consumer is never changed, only replaced, so a pull keeps the
// one that it began with.
type Consumer struct {
	Place      *Place `json:"bloomFilterData"`
	BornTime   int64  `json:"bornTime"`      // ms since 1970 of the expression's first heartbeat
	Version    int64  `json:"clientVersion"` // subVersion of the subscription
	Group      string `json:"consumerGroup"`
	Dead       bool   `json:"dead"`     // DeadTime says it; the official file has both
	DeadTime   int64  `json:"deadTime"` // ms since 1970 since when nobody has subscribed it; before BornTime: somebody does
	Expression string `json:"expression"`
	Type       string `json:"expressionType"`
	Topic      string `json:"topic"`

	compiled Expression
}

// dead tells whether nobody subscribes it now.
func (c *Consumer) dead() bool { return c.DeadTime >= c.BornTime }

// MatchQueue takes every entry: the tag does not count.
func (c *Consumer) MatchQueue(int64) bool { return true }

// MatchUnit decides by the bits that were calculated for a message when it was stored (ms since 1970). Messages that are older
// than the expression, and maps of another size, were calculated without it and are all taken.
//
// As ExpressionMessageFilter#isMatchedByConsumeQueue of 4.9.8.
func (c *Consumer) MatchUnit(storeTime int64, bits []byte) bool {
	return bits == nil || storeTime <= c.BornTime || c.Place.hit(bits)
}

// MatchRecord evaluates the expression on the properties of the record.
func (c *Consumer) MatchRecord(r message.Record) bool { return c.compiled.Match(r.Properties()) }

// MatchProperties evaluates the expression.
func (c *Consumer) MatchProperties(properties string) bool { return c.compiled.Match(properties) }

// Retry is the filter of a retry topic with filterSupportRetry: a message that was given back is taken only if the
// expression by which its group subscribes its first topic now still takes it.
//
// As ExpressionForRetryMessageFilter of 4.9.8. Where a message does not name its first topic, that one fails.
type Retry struct {
	Tags  *Tags // of the retry topic itself; nil takes every tag
	Group string
	Table *Table
}

// MatchQueue decides by the tag.
func (r *Retry) MatchQueue(tagsCode int64) bool { return r.Tags.MatchQueue(tagsCode) }

// MatchRecord evaluates the expression of the first topic.
func (r *Retry) MatchRecord(m message.Record) bool { return r.MatchProperties(m.Properties()) }

// MatchProperties evaluates the expression of the first topic.
func (r *Retry) MatchProperties(properties string) bool {
	topic, ok := message.Property(properties, message.PropertyRetryTopic)
	if !ok {
		return true
	}
	c := r.Table.Find(topic, r.Group)
	return c == nil || c.MatchProperties(properties)
}
