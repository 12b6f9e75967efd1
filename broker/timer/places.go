package timer

import "maps"

// places tell which entries of the queue wait.
type places struct {
	front key            // of the last that was delivered
	read  int64          // offset behind the last entry that was looked at
	low   int64          // offset before which nothing waits
	late  map[int64]bool // offsets of those that wait although they are not behind the front
}

// waits tells whether an entry, which has been read, waits.
func (p *places) waits(k key) bool {
	if k.offset() < p.low {
		return false
	}
	// A recall may have been looked at, but not yet what it recalls: it is looked at again.
	if p.front.less(k) || k.recall() && k.out == p.front.out {
		return true
	}
	return p.late[k.offset()]
}

// done notes that an entry waits no more.
func (p *places) done(k key) {
	if p.late[k.offset()] {
		delete(p.late, k.offset())
	} else if p.front.less(k) {
		p.front = k
	}
}

func (p *places) clone() places {
	c := *p
	c.late = maps.Clone(p.late)
	return c
}

func (p *places) equal(o *places) bool {
	return p.front == o.front && p.read == o.read && p.low == o.low && maps.Equal(p.late, o.late)
}
