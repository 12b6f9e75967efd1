// Package topics is the broker's table of topics: their queues and permissions, the rules by which they come
// into being, and their file config/topics.json. The rules are those of TopicConfigManager of 4.9.8.
package topics

import (
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/compat"
	"rocketd/protocol/body"
)

// Config is the configuration of one topic. A Config in the table is never changed, only replaced.
type Config = body.TopicConfig

// The filter types of a topic: its messages have one tag, unless it was created with the other.
const (
	SingleTag = "SINGLE_TAG"
	MultiTag  = "MULTI_TAG"
)

// System is what the system topics of a new table depend on.
type System struct {
	Cluster, Broker             string // names, which are topics too
	ClusterEnable, BrokerEnable bool   // these topics may be read and written
	DefaultQueueNums            int32  // queues of TBW102
	Trace                       string // the trace topic to create; "" = none
}

// Options is what a table needs.
type Options struct {
	Path       string // topics.json
	Files      compat.FileSystem
	System     System
	AutoCreate func() bool // autoCreateTopicEnable, as it is now
	Limit      func() int  // maxTopics, as it is now; 0 or nil = no bound
	Lmq        bool        // enableLmq: topics of light message queues are there without being in the table
	Clock      func() time.Time
	Log        *slog.Logger
	// Changed is told of every topic that was created or changed, under the table's lock: whoever reads the data
	// version afterwards has been told of all that it covers. It must not block nor call the table. Deleted topics
	// and order flags are not told, as the official broker doesn't tell name servers.
	Changed func(*Config)
}

// Table holds the topics. Lookup may be called from everywhere and takes a stripe's read lock only; changes
// are made one at a time. A change is in the file only after Saved has been called: an answer that depends on it
// waits for that, and one write serves all who wait.
type Table struct {
	o      Options
	system map[string]bool // immutable after Open
	saver  *compat.Saver
	seed   maphash.Seed
	stripe [stripes]stripe

	mu struct { // changes; taken before a stripe's lock
		sync.Mutex
		version body.DataVersion
	}
	fresh   compat.Fresh // topics created and not known to be in the file
	count   atomic.Int64 // topics
	names   atomic.Int64 // bytes of their names
	refused atomic.Int64
}

const stripes = 32

type stripe struct {
	sync.RWMutex
	m map[string]*Config
	_ [32]byte // keep neighbours off one cache line
}

// Open makes the table with its system topics and what the file holds.
func Open(o Options) (*Table, error) {
	t := &Table{o: o, seed: maphash.MakeSeed(), system: make(map[string]bool)}
	for i := range t.stripe {
		t.stripe[i].m = make(map[string]*Config)
	}
	t.mu.version = body.DataVersion{Timestamp: o.Clock().UnixMilli()}
	t.addSystem()
	if err := t.load(); err != nil {
		return nil, err
	}
	t.saver = compat.NewSaver(o.Files, o.Path, t.encode, o.Log)
	return t, nil
}

func (t *Table) at(topic string) *stripe {
	return &t.stripe[maphash.String(t.seed, topic)%stripes]
}

// Lookup returns a topic's configuration, which must not be changed, and whether the topic exists.
func (t *Table) Lookup(topic string) (*Config, bool) {
	s := t.at(topic)
	s.RLock()
	c, ok := s.m[topic]
	s.RUnlock()
	if t.o.Lmq && strings.HasPrefix(topic, LmqPrefix) { // as LmqTopicConfigManager of 4.9.8
		return &Config{TopicName: strings.Clone(topic), ReadQueueNums: 1, WriteQueueNums: 1, Perm: PermRead | PermWrite, TopicFilterType: SingleTag}, true
	}
	return c, ok
}

// set puts a topic into its stripe; the caller holds mu or is Open.
func (t *Table) set(c *Config) {
	s := t.at(c.TopicName)
	s.Lock()
	if s.m[c.TopicName] == nil {
		t.count.Add(1)
		t.names.Add(int64(len(c.TopicName)))
	}
	s.m[c.TopicName] = c
	s.Unlock()
}

// IsSystem tells whether topic is one of the server's own, which administrators may not touch.
func (t *Table) IsSystem(topic string) bool {
	return t.system[topic] || len(topic) >= len(SystemPrefix) && topic[:len(SystemPrefix)] == SystemPrefix
}

// nextLocked moves the data version on.
func (t *Table) nextLocked() {
	t.mu.version = t.mu.version.Next(t.o.Clock().UnixMilli())
}

func (t *Table) changedLocked(c *Config) {
	if t.o.Changed != nil {
		t.o.Changed(c)
	}
}

// Put creates or replaces a topic, but not that of a light message queue. The change is durable after Saved.
func (t *Table) Put(c *Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.putLocked(c)
}

func (t *Table) putLocked(c *Config) {
	if t.o.Lmq && strings.HasPrefix(c.TopicName, LmqPrefix) {
		return
	}
	t.set(c)
	t.nextLocked()
	t.changedLocked(c)
}

// Touch moves the data version on, so that name servers take the next registration of all topics.
func (t *Table) Touch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nextLocked()
}

// Delete removes a topic and tells whether it was there. The change is durable after Saved.
func (t *Table) Delete(topic string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.at(topic)
	s.Lock()
	_, ok := s.m[topic]
	delete(s.m, topic)
	s.Unlock()
	if ok {
		t.count.Add(-1)
		t.names.Add(-int64(len(topic)))
		t.nextLocked()
	}
	return ok
}

// Version is the table's data version.
func (t *Table) Version() body.DataVersion {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.version
}

// All returns every topic, in no order, and the data version that goes with them.
func (t *Table) All() ([]*Config, body.DataVersion) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*Config
	for i := range t.stripe {
		s := &t.stripe[i]
		s.RLock()
		for _, c := range s.m {
			all = append(all, c)
		}
		s.RUnlock()
	}
	return all, t.mu.version
}
