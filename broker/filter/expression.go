package filter

import (
	"strings"
	"sync"

	"rocketd/broker/filter/sql92"
	"rocketd/protocol/message"
)

// TypeSQL92 is the expression type of SQL92.
const TypeSQL92 = "SQL92"

// Filter chooses the messages of a pull: in a queue's entries, in the records, and among arrivals.
type Filter interface {
	// MatchQueue decides by the consume-queue entry.
	MatchQueue(tagsCode int64) bool
	// MatchRecord decides by the record.
	MatchRecord(r message.Record) bool
	// MatchProperties decides by the properties text.
	MatchProperties(properties string) bool
}

// Expression takes the messages for which a SQL92 expression is true. Immutable.
type Expression struct{ *sql92.Expression }

// MatchQueue takes every entry: it is the record that decides.
func (Expression) MatchQueue(int64) bool { return true }

// MatchRecord evaluates the expression on the properties of the record.
func (e Expression) MatchRecord(r message.Record) bool { return e.Match(r.Properties()) }

// MatchProperties evaluates the expression.
func (e Expression) MatchProperties(properties string) bool { return e.Match(properties) }

// Compiled remembers what the last expressions were compiled to, or why they were refused: a pull that brings its
// subscription brings it every time. The zero value is ready; it is safe for concurrent use.
type Compiled struct {
	mu        sync.RWMutex
	new, last map[string]outcome // when new is full it becomes last, and last is forgotten

	compile func(string) (*sql92.Expression, error) // in tests; nil: sql92.Compile
}

type outcome struct {
	expression Expression
	err        error
}

// Bounds of what Compiled remembers: expressions in each half, and the length in bytes of one that it keeps.
const (
	compiledHalf   = 128
	compiledLength = 16 << 10
)

// Compile is sql92.Compile, once for the same expression. The error is a *sql92.Error.
func (c *Compiled) Compile(expression string) (Expression, error) {
	c.mu.RLock()
	o, ok := c.new[expression]
	if !ok {
		o, ok = c.last[expression]
	}
	c.mu.RUnlock()
	if ok {
		return o.expression, o.err
	}
	compile := c.compile
	if compile == nil {
		compile = sql92.Compile
	}
	e, err := compile(expression)
	o = outcome{Expression{e}, err}
	if len(expression) > compiledLength {
		return o.expression, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.new == nil || len(c.new) >= compiledHalf {
		c.new, c.last = make(map[string]outcome, compiledHalf), c.new
	}
	c.new[strings.Clone(expression)] = o // it may point into a request
	return o.expression, err
}
