package broker

import (
	"errors"
	"fmt"
	"strings"

	"rocketd/broker/filter"
	"rocketd/broker/filter/sql92"
	"rocketd/broker/groups"
	"rocketd/broker/topics"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
)

// parseFailed is what a pull is told whose subscription cannot be read.
const parseFailed = "parse the consumer's subscription failed"

// inlineFilter makes the filter of a pull that brings its subscription; nil takes every message.
func (b *Broker) inlineFilter(cfg *Config, req *header.PullMessageRequest) (filter.Filter, *refusal) {
	if filter.IsTag(req.ExpressionType) {
		tags, err := filter.Parse(req.Subscription)
		if err != nil {
			return nil, &refusal{protocol.SubscriptionParseFailed, parseFailed}
		}
		return b.tagFilter(cfg, req, tags), nil
	}
	if req.Subscription == "" {
		return nil, &refusal{protocol.SubscriptionParseFailed, parseFailed}
	}
	if !cfg.EnablePropertyFilter {
		return nil, noSuchFilter(req.ExpressionType)
	}
	f, err := b.compile(req.ExpressionType, req.Subscription)
	if err != nil {
		// 4.9.8 goes on without the expression and gives every message.
		return nil, unparsed(err)
	}
	return f, nil
}

// subscribedFilter makes the filter of what the group's heartbeats subscribe; nil takes every message.
func (b *Broker) subscribedFilter(cfg *Config, req *header.PullMessageRequest, group *groups.Config) (filter.Filter, *refusal) {
	g := b.consumers.Group(req.ConsumerGroup)
	if g == nil {
		return nil, &refusal{protocol.SubscriptionNotExist, "the consumer's group info not exist" + faqSuffix}
	}
	if !group.ConsumeBroadcastEnable && g.MessageModel() == body.Broadcasting {
		return nil, &refusal{protocol.NoPermission,
			"the consumer group[" + req.ConsumerGroup + "] can not consume by broadcast way"}
	}
	s, ok := g.Subscription(req.Topic)
	if !ok {
		return nil, &refusal{protocol.SubscriptionNotExist, "the consumer's subscription not exist" + faqSuffix}
	}
	if s.SubVersion < req.SubVersion {
		return nil, &refusal{protocol.SubscriptionNotLatest, "the consumer's subscription not latest"}
	}
	if !filter.IsTag(s.ExpressionType) {
		return b.registeredFilter(cfg, req, s)
	}
	if s.ClassFilterMode { // its filter ran in a filter server, which 4.9.8 has no more
		return nil, nil
	}
	return b.tagFilter(cfg, req, filter.FromCodes(s.SubString, s.CodeSet)), nil
}

// registeredFilter finds the expression that the group's heartbeats have brought.
func (b *Broker) registeredFilter(cfg *Config, req *header.PullMessageRequest, s *body.SubscriptionData) (filter.Filter, *refusal) {
	c := b.filters.Find(req.Topic, req.ConsumerGroup)
	if c == nil {
		if cfg.EnablePropertyFilter && s.SubString != "" {
			// 4.9.8 says FILTER_DATA_NOT_EXIST and leaves it to the user to guess.
			if _, err := b.compile(s.ExpressionType, s.SubString); err != nil {
				return nil, unparsed(err)
			}
		}
		return nil, &refusal{protocol.FilterDataNotExist,
			"The broker's consumer filter data is not exist!Your expression may be wrong!"}
	}
	if c.Version < req.SubVersion {
		return nil, &refusal{protocol.FilterDataNotLatest, "the consumer's consumer filter data not latest"}
	}
	if !cfg.EnablePropertyFilter {
		return nil, noSuchFilter(s.ExpressionType)
	}
	if s.ClassFilterMode {
		return nil, nil
	}
	return c, nil
}

// tagFilter is the filter of a tag expression; in a retry topic, with filterSupportRetry, that of the topics where the messages
// come from too.
func (b *Broker) tagFilter(cfg *Config, req *header.PullMessageRequest, tags *filter.Tags) filter.Filter {
	if group, ok := strings.CutPrefix(req.Topic, topics.RetryPrefix); ok && cfg.FilterSupportRetry {
		return &filter.Retry{Tags: tags, Group: strings.Clone(group), Table: b.filters}
	}
	if tags == nil {
		return nil
	}
	return tags
}

// compile compiles an expression of a type that is not that of tags.
func (b *Broker) compile(expressionType, expression string) (filter.Filter, error) {
	if expressionType != filter.TypeSQL92 {
		return nil, errors.New("there is no expression type " + expressionType)
	}
	e, err := b.compiled.Compile(expression)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// unparsed refuses an expression with its fault and the place of that: the official texts show the place of some faults only.
func unparsed(err error) *refusal {
	var e *sql92.Error
	if errors.As(err, &e) {
		return &refusal{protocol.SubscriptionParseFailed, fmt.Sprintf("%s at line %d, column %d: %s", parseFailed, e.Line, e.Column, e.Text)}
	}
	return &refusal{protocol.SubscriptionParseFailed, parseFailed + ": " + err.Error()}
}

// filterBits tells the store the bits of a message for the consume-queue extension.
func (b *Broker) filterBits(dst []byte, topic, properties string) []byte {
	if b.filters == nil || !b.config().EnableCalcFilterBitMap { // not yet: a message that recovery finds has no bits
		return dst
	}
	return b.filters.Bits(dst, topic, properties)
}

func noSuchFilter(expressionType string) *refusal {
	return &refusal{protocol.SystemError, "The broker does not support consumer to filter message by " + expressionType}
}
