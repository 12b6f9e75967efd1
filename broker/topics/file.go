package topics

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rocketd/compat"
	"rocketd/protocol/body"
)

// lost is what it means to start without the file.
const lost = "topics are unknown until they are created again (auto-creation gives them the default queues and permissions); " +
	"their messages are still in the store and can be consumed once a topic has as many queues as before"

// load reads topics.json, or its .bak, over the system topics.
func (t *Table) load() error {
	from, err := compat.LoadConfigFileOrNone(t.o.Files, t.o.Path, t.o.Log, lost, t.decode)
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

// encode makes the text of the file: what compat.MarshalPretty makes of Wrapper, in the order of the names, so that
// an unchanged table is an unchanged file. With 25,000 topics it takes a fifth of the time and of the memory, and the file is written for
// every handful of topics that come into being.
func (t *Table) encode() ([]byte, error) {
	t.mu.Lock()
	t.fresh.Writing()
	t.mu.Unlock()
	all, version := t.All()
	slices.SortFunc(all, func(a, b *Config) int { return strings.Compare(a.TopicName, b.TopicName) })
	b := make([]byte, 0, 128+200*len(all))
	b = fmt.Appendf(b, "{\n\t\"dataVersion\":{\n\t\t\"counter\":%d,\n\t\t\"timestamp\":%d\n\t},\n\t\"topicConfigTable\":{", version.Counter, version.Timestamp)
	for i, c := range all {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendConfig(b, c); err != nil {
			return nil, err
		}
	}
	if len(all) > 0 {
		b = append(b, "\n\t"...)
	}
	return append(b, "}\n}"...), nil
}

// appendConfig adds one topic. Its name is legal, so it needs no escapes.
func appendConfig(b []byte, c *Config) ([]byte, error) {
	filter := []byte(`"SINGLE_TAG"`)
	if c.TopicFilterType != SingleTag {
		var err error
		if filter, err = compat.Marshal(c.TopicFilterType); err != nil {
			return nil, err
		}
	}
	b = append(append(append(b, "\n\t\t\""...), c.TopicName...), "\":{\n\t\t\t"...)
	if len(c.Attributes) > 0 {
		b = append(b, "\"attributes\":{"...)
		for i, key := range slices.Sorted(maps.Keys(c.Attributes)) {
			if i > 0 {
				b = append(b, ',')
			}
			pair, err := compat.Marshal(map[string]string{key: c.Attributes[key]})
			if err != nil {
				return nil, err
			}
			b = append(append(b, "\n\t\t\t\t"...), pair[1:len(pair)-1]...)
		}
		b = append(b, "\n\t\t\t},\n\t\t\t"...)
	}
	b = append(b, "\"order\":"...)
	b = strconv.AppendBool(b, c.Order)
	number := func(key string, v int32) {
		b = append(append(append(b, ",\n\t\t\t\""...), key...), "\":"...)
		b = strconv.AppendInt(b, int64(v), 10)
	}
	number("perm", c.Perm)
	number("readQueueNums", c.ReadQueueNums)
	b = append(append(b, ",\n\t\t\t\"topicFilterType\":"...), filter...)
	b = append(append(append(b, ",\n\t\t\t\"topicName\":\""...), c.TopicName...), '"')
	number("topicSysFlag", c.TopicSysFlag)
	number("writeQueueNums", c.WriteQueueNums)
	return append(b, "\n\t\t}"...), nil
}

// Saved has the file written and calls done (nil: nobody waits) once every change made so far is in it, durably,
// or with the error that keeps it from being so. It never blocks; done runs on the writer's goroutine.
func (t *Table) Saved(done func(error)) { t.fresh.Saved(t.saver, done) }

// Unsaved tells whether a topic has been created and is perhaps not in the file yet: what depends on it must wait for
// Saved, whoever has created it.
func (t *Table) Unsaved(topic string) bool { return t.fresh.Has(topic) }

// Close writes the file a last time and ends its writer.
func (t *Table) Close() error {
	t.saver.Changed(nil)
	return t.saver.Close()
}
