// Package groups is the broker's table of subscription groups: what a consumer group may do, and its file
// config/subscriptionGroup.json. The rules are those of SubscriptionGroupManager of 4.9.8.
package groups

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/compat"
	"rocketd/protocol/body"
	"rocketd/protocol/message"
)

// Config is the configuration of one group. A Config in the table is never changed, only replaced.
type Config = body.SubscriptionGroupConfig

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

// system are the groups that every broker has, as SubscriptionGroupManager of 4.9.8.
var system = []string{
	"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY",
	"CID_ONSAPI_PULL", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER",
}

// Options is what a table needs.
type Options struct {
	Path       string // subscriptionGroup.json
	Files      compat.FileSystem
	AutoCreate func() bool // autoCreateSubscriptionGroup, as it is now
	Limit      func() int  // maxSubscriptionGroups, as it is now; 0 or nil = no bound
	Lmq        bool        // enableLmq: groups of light message queues are there without being in the table
	Clock      func() time.Time
	Log        *slog.Logger
}

// Table holds the groups; it is safe for concurrent use. A change is in the file only after Saved has been
// called.
type Table struct {
	o     Options
	saver *compat.Saver

	refused atomic.Int64

	mu struct {
		sync.RWMutex
		groups  map[string]*Config
		version body.DataVersion
	}
	fresh compat.Fresh // groups created and not known to be in the file
}

// Open makes the table with the system groups and what the file holds.
func Open(o Options) (*Table, error) {
	t := &Table{o: o}
	t.mu.groups = make(map[string]*Config)
	for _, name := range system {
		t.mu.groups[name] = DefaultConfig(name)
	}
	t.mu.version = body.DataVersion{Timestamp: o.Clock().UnixMilli()}
	if err := t.load(); err != nil {
		return nil, err
	}
	t.saver = compat.NewSaver(o.Files, o.Path, t.encode, o.Log)
	return t, nil
}

// Lookup returns a group's configuration, which must not be changed, and whether the group exists; it never
// creates one.
func (t *Table) Lookup(group string) (*Config, bool) {
	if t.o.Lmq && strings.HasPrefix(group, message.LmqTopicPrefix) { // as LmqSubscriptionGroupManager of 4.9.8
		return DefaultConfig(strings.Clone(group)), true
	}
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
	if cfg, created = t.create(group); created {
		t.o.Log.Info("subscription group created", "group", cfg.GroupName)
	}
	return cfg, created
}

// create makes a group unless it is there; nil: there is no room.
func (t *Table) create(group string) (cfg *Config, created bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.mu.groups[group]; ok {
		return c, false
	}
	if t.fullLocked() || len(group) > maxName {
		t.refused.Add(1)
		return nil, false
	}
	c := DefaultConfig(strings.Clone(group)) // it may point into a request
	t.createLocked(c)
	return c, true
}

// Put creates or replaces a group, but not one of light message queues. The change is durable after Saved. The error
// is ErrFull or ErrName.
func (t *Table) Put(c *Config) error {
	if t.o.Lmq && strings.HasPrefix(c.GroupName, message.LmqTopicPrefix) {
		return nil
	}
	if len(c.GroupName) > maxName {
		return ErrName
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.groups[c.GroupName] == nil {
		if t.fullLocked() {
			t.refused.Add(1)
			return ErrFull
		}
		t.createLocked(c)
		return nil
	}
	t.mu.groups[c.GroupName] = c
	t.nextLocked()
	return nil
}

// createLocked enters a group that is not there.
func (t *Table) createLocked(c *Config) {
	t.fresh.Add(c.GroupName)
	t.mu.groups[c.GroupName] = c
	t.nextLocked()
}

// maxName is the most bytes of a group's name. Clients allow 255 characters; the official broker has no bound.
const maxName = 1024

// Why a group is not created.
var (
	ErrFull = errors.New("there are as many subscription groups as maxSubscriptionGroups allows")
	ErrName = fmt.Errorf("the name of the subscription group is longer than %d bytes", maxName)
)

// fullLocked tells whether no further group may be created.
func (t *Table) fullLocked() bool {
	if t.o.Limit == nil {
		return false
	}
	limit := t.o.Limit()
	return limit > 0 && len(t.mu.groups) >= limit
}

// Refused is how many groups were not created since the start because there were too many, or their names too long.
func (t *Table) Refused() int64 { return t.refused.Load() }

// DisableConsume forbids a group to consume and tells whether it was allowed to.
func (t *Table) DisableConsume(group string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.mu.groups[group]
	if old == nil || !old.ConsumeEnable {
		return false
	}
	c := *old
	c.ConsumeEnable = false
	t.mu.groups[group] = &c
	t.nextLocked()
	return true
}

// Delete removes a group and tells whether it was there. The change is durable after Saved.
func (t *Table) Delete(group string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.mu.groups[group]
	if ok {
		delete(t.mu.groups, group)
		t.nextLocked()
	}
	return ok
}

// nextLocked moves the data version on.
func (t *Table) nextLocked() {
	t.mu.version = t.mu.version.Next(t.o.Clock().UnixMilli())
}
