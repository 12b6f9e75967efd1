package transaction

// bits says of half messages whether they have an op: a bit for each queue offset from base on. It grows with the
// highest offset set. The zero value is empty.
type bits struct {
	base  int64 // queue offset of the first bit, a multiple of 64
	words []uint64
}

// set notes the half message at a queue offset. One before base is passed already.
func (b *bits) set(at int64) {
	if at < b.base {
		return
	}
	n := (at - b.base) >> 6
	for int64(len(b.words)) <= n {
		b.words = append(b.words, 0)
	}
	b.words[n] |= 1 << uint(at&63)
}

// has tells whether it was noted.
func (b *bits) has(at int64) bool {
	n := (at - b.base) >> 6
	return at >= b.base && n < int64(len(b.words)) && b.words[n]&(1<<uint(at&63)) != 0
}

// drop forgets the offsets before at, in words of 64.
func (b *bits) drop(at int64) {
	n := (at - b.base) >> 6
	if n <= 0 {
		return
	}
	if n >= int64(len(b.words)) {
		b.words = nil
	} else {
		b.words = b.words[n:]
	}
	b.base += n << 6
}

// reset empties it and has it begin at an offset.
func (b *bits) reset(at int64) { *b = bits{base: at &^ 63} }
