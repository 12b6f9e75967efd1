package timer

import "math"

// key is the place of a waiting entry in the order of delivery: by the time it is due (ms), then by its offset. Of those that
// are due at one time the recalls come first, whatever their offset.
type key struct{ out, at int64 }

// messageBit is set in key.at of what is no recall; the rest is the queue offset.
const messageBit = 1 << 62

// maxKey is behind every key.
var maxKey = key{math.MaxInt64, math.MaxInt64}

// keyOf makes the key of an entry from its message.TimerCode.
func keyOf(code, offset int64) key {
	if code < 0 {
		return key{-code, offset}
	}
	return key{code, offset | messageBit}
}

func (k key) offset() int64 { return k.at &^ messageBit }

func (k key) recall() bool { return k.at&messageBit == 0 }

func (k key) less(o key) bool { return k.out < o.out || k.out == o.out && k.at < o.at }
