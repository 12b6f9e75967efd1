package topics

import "strings"

// benchmarkQueues and scheduleQueues are the official queue numbers; the latter is fixed whatever delay levels
// are configured.
const (
	benchmarkQueues = 1024
	scheduleQueues  = 18
	defaultQueues   = 16 // of a TopicConfig that says nothing else: the cluster-named topic
)

// addSystem puts the topics that every broker has into the table, as TopicConfigManager of 4.9.8. Three of them are
// named after the broker and its cluster, which may be called what no topic may: 4.9.8 keeps these too, and makes
// folders of their names.
//
// A broker or a cluster may have a name that no topic may have, such as a host name with dots. The official broker
// registers a topic of it all the same, which tools look for in the routes; sends to it are refused, there and here.
func (t *Table) addSystem() {
	add := func(topic string, queues, perm int32) {
		t.system[topic] = true
		if !isFolder(topic) {
			return
		}
		t.set(&Config{TopicName: topic, ReadQueueNums: queues, WriteQueueNums: queues, Perm: perm, TopicFilterType: SingleTag})
	}
	const rw = PermRead | PermWrite
	inherit := func(enable bool) int32 {
		if enable {
			return PermInherit | rw
		}
		return PermInherit
	}
	for _, topic := range []string{AutoCreate, Schedule, Benchmark, TransHalf, Trace, TransOpHalf, TransCheckMaxTime, SelfTest, OffsetMovedEvent} {
		t.system[topic] = true
	}
	y := t.o.System
	add(SelfTest, 1, rw)
	if t.o.AutoCreate() {
		add(AutoCreate, y.DefaultQueueNums, inherit(true))
	}
	add(Benchmark, benchmarkQueues, rw)
	add(y.Cluster, defaultQueues, inherit(y.ClusterEnable))
	add(y.Broker, 1, inherit(y.BrokerEnable))
	add(OffsetMovedEvent, 1, rw)
	add(Schedule, scheduleQueues, rw)
	if y.Trace != "" {
		add(y.Trace, 1, rw)
	}
	add(ReplyTopic(y.Cluster), 1, rw)
}

// System returns the names of the server's own topics, those of rmq_sys_… aside.
func (t *Table) System() []string {
	names := make([]string, 0, len(t.system))
	for n := range t.system {
		names = append(names, n)
	}
	return names
}

// CreateBySend returns the topic, creating it after the model of defaultTopic when it does not exist yet:
// queueNums queues, but no more than the model has, and its permission without the inherit bit. nil means that
// the topic may not be created, or that there are too many. An answer that depends on a created topic waits for Saved.
func (t *Table) CreateBySend(topic, defaultTopic string, queueNums, sysFlag int32) (cfg *Config, created bool) {
	t.mu.Lock()
	if c, ok := t.Lookup(topic); ok {
		t.mu.Unlock()
		return c, false
	}
	model, ok := t.Lookup(defaultTopic)
	if ok && defaultTopic == AutoCreate && !t.o.AutoCreate() && model.Perm != PermRead|PermWrite {
		// As 4.9.8: with auto-creation switched off a template that still exists loses its inherit bit.
		c := *model
		c.Perm = PermRead | PermWrite
		model = &c
		t.set(model)
	}
	if !ok || !Inherited(model.Perm) || !IsLegal(topic) {
		t.mu.Unlock()
		t.o.Log.Warn("topic not created: its default topic does not exist or has no inherit permission, or its name is illegal",
			"topic", topic, "defaultTopic", defaultTopic)
		return nil, false
	}
	if t.refuse(topic) {
		t.mu.Unlock()
		return nil, false
	}
	n := max(0, min(queueNums, model.WriteQueueNums))
	c := &Config{
		TopicName: topic, ReadQueueNums: n, WriteQueueNums: n,
		Perm: model.Perm &^ PermInherit, TopicFilterType: model.TopicFilterType, TopicSysFlag: sysFlag,
	}
	t.createLocked(c)
	t.mu.Unlock()
	t.tellCreated(c)
	return c, true
}

// CreateBySendBack returns the topic, creating it as described when it does not exist yet: retry topics and
// dead-letter topics. nil means that the name, and so the group's, has characters that no topic may have; the
// official broker checks no group names, but a topic's name becomes that of a folder. An answer that depends on a
// created topic waits for Saved.
func (t *Table) CreateBySendBack(topic string, queueNums, perm, sysFlag int32) (cfg *Config, created bool) {
	if c, ok := t.Lookup(topic); ok {
		return c, false
	}
	if !IsLegal(topic) {
		t.o.Log.Warn("topic not created: its name has illegal characters", "topic", topic)
		return nil, false
	}
	t.mu.Lock()
	if c, ok := t.Lookup(topic); ok {
		t.mu.Unlock()
		return c, false
	}
	if t.refuse(topic) {
		t.mu.Unlock()
		return nil, false
	}
	c := &Config{
		TopicName: topic, ReadQueueNums: queueNums, WriteQueueNums: queueNums,
		Perm: perm, TopicFilterType: SingleTag, TopicSysFlag: sysFlag,
	}
	t.createLocked(c)
	t.mu.Unlock()
	t.tellCreated(c)
	return c, true
}

func (t *Table) createLocked(c *Config) {
	c.TopicName = strings.Clone(c.TopicName) // it may point into a request
	t.fresh.Add(c.TopicName)
	t.set(c)
	t.nextLocked()
	t.changedLocked(c)
}

// tellCreated tells the log of a topic, with no lock held: the log may be slow.
func (t *Table) tellCreated(c *Config) {
	t.o.Log.Info("topic created", "topic", c.TopicName, "readQueueNums", c.ReadQueueNums,
		"writeQueueNums", c.WriteQueueNums, "perm", c.Perm)
}

// SetOrder sets the order flag of the topics in the table and clears it on all others, as the name server's
// answer to a registration tells; it returns whether anything changed.
func (t *Table) SetOrder(ordered map[string]string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	any := false
	for i := range t.stripe {
		s := &t.stripe[i]
		s.Lock()
		for name, c := range s.m {
			if _, order := ordered[name]; order != c.Order {
				n := *c
				n.Order = order
				s.m[name] = &n
				any = true
			}
		}
		s.Unlock()
	}
	if any {
		t.nextLocked()
	}
	return any
}
