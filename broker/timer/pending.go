package timer

// pending are the soonest of the waiting entries: a heap of at most limit keys. When there would be more the later half
// goes, and what comes behind the horizon then is not kept until the heap is filled again from the queue.
type pending struct {
	keys    []key
	limit   int
	horizon key // what is not before it is not kept; maxKey: everything is here
}

func newPending(limit int) pending { return pending{limit: max(limit, 4), horizon: maxKey} }

// whole tells whether everything that waits is here.
func (p *pending) whole() bool { return p.horizon == maxKey }

// reset empties it.
func (p *pending) reset() { p.keys, p.horizon = p.keys[:0], maxKey }

// add adds a key, unless it lies behind the horizon.
func (p *pending) add(k key) {
	if !k.less(p.horizon) {
		return
	}
	if len(p.keys) == p.limit {
		p.halve()
		if !k.less(p.horizon) {
			return
		}
	}
	if len(p.keys) == cap(p.keys) {
		grown := make([]key, len(p.keys), min(max(2*cap(p.keys), 1024), max(p.limit, len(p.keys)+1)))
		copy(grown, p.keys)
		p.keys = grown
	}
	p.keys = append(p.keys, k)
	for i := len(p.keys) - 1; i > 0; {
		up := (i - 1) / 2
		if !p.keys[i].less(p.keys[up]) {
			break
		}
		p.keys[i], p.keys[up] = p.keys[up], p.keys[i]
		i = up
	}
}

// first is the soonest key.
func (p *pending) first() (key, bool) {
	if len(p.keys) == 0 {
		return key{}, false
	}
	return p.keys[0], true
}

// pop removes the soonest key.
func (p *pending) pop() {
	last := len(p.keys) - 1
	p.keys[0] = p.keys[last]
	p.keys = p.keys[:last]
	p.down(0)
}

func (p *pending) down(i int) {
	for {
		least := 2*i + 1
		if least >= len(p.keys) {
			return
		}
		if right := least + 1; right < len(p.keys) && p.keys[right].less(p.keys[least]) {
			least = right
		}
		if !p.keys[least].less(p.keys[i]) {
			return
		}
		p.keys[i], p.keys[least] = p.keys[least], p.keys[i]
		i = least
	}
}

// halve drops the later half. The horizon becomes the soonest of what goes.
func (p *pending) halve() {
	half := len(p.keys) / 2
	p.divide(half)
	p.horizon = p.keys[half]
	p.keys = p.keys[:half]
	for i := half/2 - 1; i >= 0; i-- {
		p.down(i)
	}
}

// divide puts the n soonest keys first, and the soonest of the others at n (Hoare's selection).
func (p *pending) divide(n int) {
	low, high := 0, len(p.keys)-1
	for low < high {
		pivot := p.keys[low+(high-low)/2]
		i, j := low, high
		for i <= j {
			for p.keys[i].less(pivot) {
				i++
			}
			for pivot.less(p.keys[j]) {
				j--
			}
			if i <= j {
				p.keys[i], p.keys[j] = p.keys[j], p.keys[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			high = j
		case n >= i:
			low = i
		default:
			return
		}
	}
}

// lowest is the least queue offset of the keys, or end.
func (p *pending) lowest(end int64) int64 {
	for _, k := range p.keys {
		end = min(end, k.offset())
	}
	return end
}
