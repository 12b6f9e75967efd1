package topics

import (
	"fmt"

	"rocketd/compat"
	"rocketd/protocol/body"
)

// load reads topics.json, or its .bak, over the system topics.
func (t *Table) load() error {
	from, err := compat.LoadConfigFile(t.o.Files, t.o.Path, t.decode)
	if err != nil {
		return fmt.Errorf("topics: %w", err)
	}
	if from != "" {
		t.o.Log.Info("topics loaded", "file", from)
	}
	return nil
}

// decode takes what a file says. As TopicConfigManager#decode: the file's topics replace those of the same
// name, and its data version goes on.
func (t *Table) decode(data []byte) error {
	w := new(body.TopicConfigSerializeWrapper)
	if err := compat.Unmarshal(data, w); err != nil {
		return err
	}
	if w.TopicConfigTable == nil {
		return fmt.Errorf("no topicConfigTable")
	}
	for name, c := range w.TopicConfigTable {
		if c == nil {
			continue
		}
		if c.TopicName == "" {
			c.TopicName = name
		}
		if !IsLegal(c.TopicName) {
			t.o.Log.Warn("topic left out: its name has illegal characters", "topic", c.TopicName)
			continue
		}
		if c.TopicFilterType == "" {
			c.TopicFilterType = SingleTag
		}
		t.set(c)
	}
	t.mu.version = w.DataVersion
	return nil
}

// Wrapper is the whole table in the form of the file and of GET_ALL_TOPIC_CONFIG.
func (t *Table) Wrapper() *body.TopicConfigSerializeWrapper {
	all, version := t.All()
	w := &body.TopicConfigSerializeWrapper{DataVersion: version, TopicConfigTable: make(map[string]*Config, len(all))}
	for _, c := range all {
		w.TopicConfigTable[c.TopicName] = c
	}
	return w
}

func (t *Table) encode() ([]byte, error) { return compat.MarshalPretty(t.Wrapper()) }

// Saved has the file written and calls done (nil: nobody waits) once every change made so far is in it, durably,
// or with the error that keeps it from being so. It never blocks; done runs on the writer's goroutine.
func (t *Table) Saved(done func(error)) { t.saver.Changed(done) }

// Close writes the file a last time and ends its writer.
func (t *Table) Close() error {
	t.saver.Changed(nil)
	return t.saver.Close()
}
