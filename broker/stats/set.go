package stats

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// shards of a Set: those that count take only read locks, so it is creations that must not meet.
const shards = 32

// Set holds Items by key.
type Set[K comparable] struct {
	limit int64 // of items
	count atomic.Int64
	full  func() // told when an item could not be made
	parts [shards]struct {
		mu    sync.RWMutex
		items map[K]*Item
	}
}

var seed = maphash.MakeSeed()

func (s *Set[K]) init(limit int64, full func()) {
	s.limit, s.full = limit, full
	for i := range s.parts {
		s.parts[i].items = make(map[K]*Item)
	}
}

// find returns the item of a key, nil when there is none.
func (s *Set[K]) find(k K) *Item {
	p := &s.parts[maphash.Comparable(seed, k)%shards]
	p.mu.RLock()
	i := p.items[k]
	p.mu.RUnlock()
	return i
}

// item returns the item of a key; it makes one that is not there, with the key that own returns (one that keeps no
// memory of a request). nil: there are too many.
func (s *Set[K]) item(k K, own func(K) K) *Item {
	p := &s.parts[maphash.Comparable(seed, k)%shards]
	p.mu.RLock()
	i := p.items[k]
	p.mu.RUnlock()
	if i != nil {
		return i
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i = p.items[k]; i != nil {
		return i
	}
	if s.count.Add(1) > s.limit {
		s.count.Add(-1)
		s.full()
		return nil
	}
	i = new(Item)
	p.items[own(k)] = i
	return i
}

// each calls f for every item; nobody who counts waits for it.
func (s *Set[K]) each(f func(*Item)) {
	for n := range s.parts {
		p := &s.parts[n]
		p.mu.RLock()
		for _, i := range p.items {
			f(i)
		}
		p.mu.RUnlock()
	}
}

// eachKey calls f for every key and its item.
func (s *Set[K]) eachKey(f func(K, *Item)) {
	for n := range s.parts {
		p := &s.parts[n]
		p.mu.RLock()
		for k, i := range p.items {
			f(k, i)
		}
		p.mu.RUnlock()
	}
}

// remove removes the items whose key f takes.
func (s *Set[K]) remove(f func(K) bool) {
	for n := range s.parts {
		p := &s.parts[n]
		p.mu.RLock()
		var found []K
		for k := range p.items {
			if f(k) {
				found = append(found, k)
			}
		}
		p.mu.RUnlock()
		if len(found) == 0 {
			continue
		}
		p.mu.Lock()
		for _, k := range found {
			if _, ok := p.items[k]; ok {
				delete(p.items, k)
				s.count.Add(-1)
			}
		}
		p.mu.Unlock()
	}
}
