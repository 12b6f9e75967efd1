package groups

import (
	"fmt"
	"maps"

	"rocketd/compat"
	"rocketd/protocol/body"
)

// lost is what it means to start without the file.
const lost = "subscription groups get the default settings again as their consumers come (with autoCreateSubscriptionGroup=false they must be created again); " +
	"groups that were disabled, or had other retry settings, are not any more"

// load reads subscriptionGroup.json, or its .bak, over the system groups.
func (t *Table) load() error {
	from, err := compat.LoadConfigFileOrNone(t.o.Files, t.o.Path, t.o.Log, lost, t.decode)
	if err != nil {
		return fmt.Errorf("subscription groups: %w", err)
	}
	if from != "" {
		t.o.Log.Info("subscription groups loaded", "file", from)
	}
	return nil
}

// decode takes what a file says. As SubscriptionGroupManager#decode: the file's groups replace those of the same
// name, and its data version goes on.
func (t *Table) decode(data []byte) error {
	w := new(body.SubscriptionGroupWrapper)
	if err := compat.Unmarshal(data, w); err != nil {
		return err
	}
	if w.SubscriptionGroupTable == nil {
		return fmt.Errorf("no subscriptionGroupTable")
	}
	for name, c := range w.SubscriptionGroupTable {
		if c == nil {
			continue
		}
		if c.GroupName == "" {
			c.GroupName = name
		}
		t.mu.groups[name] = c
	}
	t.mu.version = w.DataVersion
	return nil
}

// Wrapper is the whole table in the form of the file and of GET_ALL_SUBSCRIPTIONGROUP_CONFIG.
func (t *Table) Wrapper() *body.SubscriptionGroupWrapper {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return &body.SubscriptionGroupWrapper{DataVersion: t.mu.version, SubscriptionGroupTable: maps.Clone(t.mu.groups)}
}

func (t *Table) encode() ([]byte, error) {
	t.mu.RLock()
	t.fresh.Writing()
	t.mu.RUnlock()
	return compat.MarshalPretty(t.Wrapper())
}

// Saved has the file written and calls done (nil: nobody waits) once every change made so far is in it, durably,
// or with the error that keeps it from being so. It never blocks; done runs on the writer's goroutine.
func (t *Table) Saved(done func(error)) { t.fresh.Saved(t.saver, done) }

// Unsaved tells whether a group has been created and is perhaps not in the file yet: what depends on it must wait for Saved,
// whoever has created it.
func (t *Table) Unsaved(group string) bool { return t.fresh.Has(group) }

// Close writes the file a last time and ends its writer.
func (t *Table) Close() error {
	t.saver.Changed(nil)
	return t.saver.Close()
}
