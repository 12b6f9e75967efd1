package filter

import (
	"fmt"

	"rocketd/compat"
)

// file is consumerFilter.json.
type file struct {
	FilterDataByTopic map[string]*topicFilters `json:"filterDataByTopic"`
}

type topicFilters struct {
	GroupFilterData map[string]*Consumer `json:"groupFilterData"`
	Topic           string               `json:"topic"`
}

// lost is what it means to start without the file.
const lost = "SQL92 expressions come again with the consumers' heartbeats; messages that were stored with bits for them are looked at one by one"

// load reads consumerFilter.json, or its .bak.
func (t *Table) load() error {
	from, err := compat.LoadConfigFileOrNone(t.o.Files, t.o.Path, t.o.Log, lost, t.decode)
	if err != nil {
		return fmt.Errorf("consumer filters: %w", err)
	}
	if from != "" {
		t.o.Log.Info("consumer filters loaded", "file", from)
	}
	return nil
}

// deadBefore is how long before the load a consumer counts as dead that was alive when the file was written, in ms.
const deadBefore = 30_000

// decode takes what a file says. As ConsumerFilterManager#decode of 4.9.8: all consumers count as dead until they
// are heard of, and when the file was written with other numbers for the bloom filter nothing of it is used. An
// expression that cannot be compiled is left out; there it takes every message.
func (t *Table) decode(data []byte) error {
	f := new(file)
	if err := compat.Unmarshal(data, f); err != nil {
		return err
	}
	var all []*Consumer
	deadTime := t.o.Clock().UnixMilli() - deadBefore
	for topic, of := range f.FilterDataByTopic {
		if of == nil {
			continue
		}
		for group, c := range of.GroupFilterData {
			if c == nil {
				continue
			}
			if !t.o.Bloom.valid(c.Place) {
				t.o.Log.Warn("the bloom filter's settings have changed, saved consumer filters are not used",
					"topic", topic, "group", group, "bits", t.o.Bloom.bits)
				return nil
			}
			c.Topic, c.Group = topic, group
			compiled, err := t.o.Compiled.Compile(c.Expression)
			if err != nil || c.Type != TypeSQL92 {
				t.o.Log.Warn("a saved consumer filter can't be used", "topic", topic, "group", group, "type", c.Type, "err", err)
				continue
			}
			c.compiled = compiled
			if c.DeadTime == 0 {
				c.DeadTime = max(deadTime, c.BornTime)
			}
			all = append(all, c)
		}
	}
	for _, c := range all {
		t.putLocked(c) // nobody else has the table yet
	}
	return nil
}

// written is the consumer as the file has it.
func (c *Consumer) written() *Consumer {
	w := *c
	w.Dead = c.dead()
	return &w
}

// Text is the consumer as the file has it, for administrators.
func (c *Consumer) Text() string {
	text, err := compat.MarshalPretty(c.written())
	if err != nil { // it has texts and numbers only
		return err.Error()
	}
	return string(text)
}

func (t *Table) encode() ([]byte, error) {
	f := file{FilterDataByTopic: map[string]*topicFilters{}}
	t.mu.RLock()
	for topic, of := range t.mu.topics {
		groups := make(map[string]*Consumer, len(of))
		for group, c := range of {
			groups[group] = c.written()
		}
		f.FilterDataByTopic[topic] = &topicFilters{GroupFilterData: groups, Topic: topic}
	}
	t.mu.RUnlock()
	return compat.MarshalPretty(&f)
}

// Close writes the file a last time, if anything has changed, and ends its writer.
func (t *Table) Close() error { return t.saver.Close() }
