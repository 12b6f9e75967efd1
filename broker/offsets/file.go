package offsets

import (
	"fmt"
	"maps"
	"strings"

	"rocketd/compat"
	"rocketd/protocol/body"
)

// separator parts topic and group in the file's keys. No topic can hold it; a group may.
const separator = "@"

// lost is what it means to start without the file.
const lost = "every consumer group starts by its consumeFromWhere: messages may be consumed again, or skipped; set offsets with mqadmin resetOffsetByTime"

// load reads consumerOffset.json, or its .bak.
func (t *Table) load() error {
	from, err := compat.LoadConfigFileOrNone(t.o.Files, t.o.Path, t.o.Log, lost, t.decode)
	if err == nil && from == "" && t.o.Older != "" {
		from, err = compat.LoadConfigFileOrNone(t.o.Files, t.o.Older, t.o.Log, lost, t.decode)
		t.dirty.Store(from != "")
	}
	if err != nil {
		return fmt.Errorf("consumer offsets: %w", err)
	}
	if from != "" {
		t.o.Log.Info("consumer offsets loaded", "file", from)
	}
	return nil
}

func (t *Table) decode(data []byte) error {
	w := new(body.LmqConsumerOffsetSerializeWrapper)
	if err := compat.Unmarshal(data, w); err != nil {
		return err
	}
	if w.OffsetTable == nil {
		return fmt.Errorf("no offsetTable")
	}
	for name, offsets := range w.OffsetTable {
		topic, group, ok := strings.Cut(name, separator)
		if !ok {
			t.o.Log.Warn("consumer offsets of a strange key left out", "key", name)
			continue
		}
		q := &queues{m: make(map[int32]int64, len(offsets))}
		maps.Copy(q.m, offsets)
		t.count.Add(int64(len(q.m)))
		t.mu.m[key{topic, group}] = q
	}
	for name, offset := range w.LmqOffsetTable {
		topic, group, ok := strings.Cut(name, separator)
		if !ok {
			t.o.Log.Warn("consumer offset of a strange key left out", "key", name)
			continue
		}
		t.count.Add(1)
		t.mu.m[key{topic, group}] = &queues{m: map[int32]int64{0: offset}}
	}
	return nil
}

// Wrapper is the whole table in the form of the file and of GET_ALL_CONSUMER_OFFSET. Each topic and group is
// taken at one moment, the table is not. It is a body.ConsumerOffsetSerializeWrapper, or with Lmq a
// body.LmqConsumerOffsetSerializeWrapper.
func (t *Table) Wrapper() any {
	// Whoever commits a first offset waits for the table, and all others behind him: it is left as soon as may be.
	type entry struct {
		key
		*queues
	}
	t.mu.RLock()
	entries := make([]entry, 0, len(t.mu.m))
	for k, q := range t.mu.m {
		entries = append(entries, entry{k, q})
	}
	t.mu.RUnlock()
	all, light := make(map[string]map[int32]int64, len(entries)), make(map[string]int64)
	for _, e := range entries {
		name := e.topic + separator + e.group
		e.Lock()
		if t.light(e.group) {
			light[name] = e.m[0]
		} else {
			all[name] = maps.Clone(e.m)
		}
		e.Unlock()
	}
	if t.o.Lmq {
		return &body.LmqConsumerOffsetSerializeWrapper{LmqOffsetTable: light, OffsetTable: all}
	}
	return &body.ConsumerOffsetSerializeWrapper{OffsetTable: all}
}

func (t *Table) encode() ([]byte, error) { return compat.MarshalPretty(t.Wrapper()) }

// Save has the file written when anything was committed since the last time; it does not wait.
func (t *Table) Save() {
	if t.dirty.Swap(false) {
		t.saver.Changed(func(err error) {
			if err != nil {
				t.dirty.Store(true)
			}
		})
	}
}

// Saved has the file written, and calls done when it holds all that was committed before.
func (t *Table) Saved(done func(error)) {
	t.dirty.Store(false)
	t.saver.Changed(func(err error) {
		if err != nil {
			t.dirty.Store(true)
		}
		done(err)
	})
}

// Close writes what is not yet written and ends the writer.
func (t *Table) Close() error {
	t.Save()
	return t.saver.Close()
}
