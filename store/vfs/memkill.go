package vfs

import (
	"maps"
	"slices"
)

// Kill returns the disk and its page cache as a process leaves them that dies now: all that was written can be read, but
// what was not synced is still only written, and a Crash of the copy may lose it. m itself is not changed.
func (m *Mem) Kill() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := NewMem(m.clock)
	k.capacity.Store(m.capacity.Load())
	k.allocated.Store(m.allocated.Load())
	copies := map[*memNode]*memNode{nil: nil}
	k.mu.root = m.mu.root.copied(k, copies)
	return k
}

// copied is the copy of n on the disk k. copies are those made so far: a node may stand in several tables.
func (n *memNode) copied(k *Mem, copies map[*memNode]*memNode) *memNode {
	if c, ok := copies[n]; ok {
		return c
	}
	c := &memNode{fs: k, dir: n.dir}
	copies[n] = c
	n.file.copyTo(&c.file)
	if !n.dir {
		return c
	}
	table := func(entries map[string]*memNode) map[string]*memNode {
		t := make(map[string]*memNode, len(entries))
		for name, child := range entries {
			t[name] = child.copied(k, copies)
		}
		return t
	}
	c.entries, c.durable = table(n.entries), table(n.durable)
	c.pending = slices.Clone(n.pending)
	for i := range c.pending {
		c.pending[i].node = c.pending[i].node.copied(k, copies)
	}
	return c
}

func (d *memData) copyTo(c *memData) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	c.data, c.durable = slices.Clone(d.data), slices.Clone(d.durable)
	c.dirty, c.pages, c.modified = maps.Clone(d.dirty), maps.Clone(d.pages), d.modified
}
