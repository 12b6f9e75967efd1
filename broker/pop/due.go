package pop

// timed is something that is due at a time (ms) and knows its place in a heap; -1: it is in none.
type timed interface {
	dueAt() int64
	place() *int
}

// dueHeap is a heap of things by the time they are due, from which any can be taken out.
type dueHeap[T timed] []T

// first is what is due first.
func (h dueHeap[T]) first() (t T, ok bool) {
	if len(h) == 0 {
		return t, false
	}
	return h[0], true
}

func (h *dueHeap[T]) push(t T) {
	*h = append(*h, t)
	*t.place() = len(*h) - 1
	h.up(len(*h) - 1)
}

// remove takes t out; it must be in the heap.
func (h *dueHeap[T]) remove(t T) {
	s, i := *h, *t.place()
	last := len(s) - 1
	if i != last {
		h.swap(i, last)
	}
	var none T
	s[last] = none
	*h = s[:last]
	*t.place() = -1
	if i < last {
		h.down(i)
		h.up(i)
	}
}

func (h dueHeap[T]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].place(), *h[j].place() = i, j
}

func (h dueHeap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].dueAt() <= h[i].dueAt() {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h dueHeap[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].dueAt() < h[child].dueAt() {
			child++
		}
		if h[i].dueAt() <= h[child].dueAt() {
			return
		}
		h.swap(i, child)
		i = child
	}
}
