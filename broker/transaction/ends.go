package transaction

import (
	"maps"
	"sync"
)

// ends knows of which half messages an end is under way or done, from the moment on at which it is taken up. The ops come
// later, and the producer may have been asked about a copy meanwhile, or be asked just then: it ends the transaction a second
// time, by the copy. What is said of one half message counts for the copies that are known of it.
//
// Whoever wants to end one asks Begin; the checks tell of copies and ask before they ask a producer. A half message is forgotten
// one round after the checks have passed it; one that has copies, lateRounds later at least, since a local transaction may take long:
// its producer has answered a check, and ends it itself in the end.
type ends struct {
	mu    sync.Mutex
	words map[int64]uint64 // a bit for each half message: queue offset >> 6 → those of 64
	floor int64            // what is below this key is forgotten
	moved map[int64]int64  // Checks.moved; the checks write it with mu held, and read it without

	late, older map[int64]struct{} // those with copies that have ended and are passed; at times late becomes older
	rounds      int                // since then
}

// endBound bounds ends.words. What has no room is not known; the transaction may then be ended twice, as officially.
const endBound = 1 << 20

// lateRounds is how many rounds ends.late lives, lateBound how many half messages it holds before it must go.
const (
	lateRounds = 60
	lateBound  = 1 << 17
)

// Begin tells whether an end of the half message at a queue offset may be carried out: true for the first, until Undo. False: it,
// or a copy of it, is being ended by somebody else or has been. It may be called at any time, by anybody.
func (c *Checks) Begin(half int64) (first bool) {
	e := &c.ends
	e.mu.Lock()
	defer e.mu.Unlock()
	for at, on := half, true; on; at, on = e.copyLocked(at) {
		if e.hasLocked(at) {
			return false
		}
	}
	for at, on := half, true; on; at, on = e.copyLocked(at) {
		e.setLocked(at)
	}
	return true
}

// Undo takes back a Begin that said true: the end could not be carried out.
func (c *Checks) Undo(half int64) {
	e := &c.ends
	e.mu.Lock()
	defer e.mu.Unlock()
	for at, on := half, true; on; at, on = e.copyLocked(at) {
		if word, ok := e.words[at>>6]; ok {
			e.words[at>>6] = word &^ (1 << uint(at&63))
		}
	}
}

// ending tells whether an end of a half message, or of one that it is a copy of, is under way or done.
func (e *ends) ending(half int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hasLocked(half)
}

// move notes that a half message has a copy.
func (e *ends) move(from, to int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.moved[from] = to
	if e.hasLocked(from) {
		e.setLocked(to)
	}
}

// unmove forgets that, and remembers both for longer if they have ended.
func (e *ends) unmove(from int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	to := e.moved[from]
	delete(e.moved, from)
	if !e.hasLocked(to) {
		return
	}
	if len(e.late) >= lateBound {
		e.ageLocked()
	}
	if e.late == nil {
		e.late = make(map[int64]struct{})
	}
	e.late[from], e.late[to] = struct{}{}, struct{}{}
}

func (e *ends) ageLocked() { e.older, e.late, e.rounds = e.late, nil, 0 }

// reset makes an empty table of copies and returns it.
func (e *ends) reset() map[int64]int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.moved = make(map[int64]int64)
	return e.moved
}

// drop forgets the half messages before one. The lock is held for a piece at a time, since ends wait for it.
func (e *ends) drop(half int64) {
	const piece = 1 << 10
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rounds++; e.rounds >= lateRounds {
		e.ageLocked()
	}
	at := e.floor
	e.floor = half >> 6
	if e.floor-at > int64(len(e.words)) { // mostly the first after a start
		maps.DeleteFunc(e.words, func(key int64, _ uint64) bool { return key < e.floor })
		return
	}
	for ; at < e.floor; at++ {
		if delete(e.words, at); at%piece == 0 {
			e.mu.Unlock()
			e.mu.Lock()
		}
	}
}

// forget forgets all: the queue may get other half messages.
func (e *ends) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.words)
	e.late, e.older = nil, nil
}

func (e *ends) copyLocked(half int64) (next int64, ok bool) {
	next, ok = e.moved[half]
	return next, ok && next > half
}

func (e *ends) hasLocked(half int64) bool {
	if e.words[half>>6]&(1<<uint(half&63)) != 0 {
		return true
	}
	_, late := e.late[half]
	_, older := e.older[half]
	return late || older
}

func (e *ends) setLocked(half int64) {
	key := half >> 6
	word, ok := e.words[key]
	if !ok && (key < e.floor || len(e.words) >= endBound) {
		return
	}
	if e.words == nil {
		e.words = make(map[int64]uint64)
	}
	e.words[key] = word | 1<<uint(half&63)
}
