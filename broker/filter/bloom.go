package filter

import (
	"fmt"
	"math"

	"github.com/spaolacci/murmur3"

	"rocketd/compat"
)

// Bloom is the official bloom filter: of every consumer that chooses messages by an expression a few bits, and of
// every message the bits of the consumers whose expression it fulfils. Its numbers and positions are part of
// consumerFilter.json and of the consume-queue extension, so they are the official ones.
type Bloom struct {
	hashes int // positions of each consumer; k
	bits   int // m
}

// NewBloom makes the filter for an error rate in percent (1 to 99, maxErrorRateOfBloomFilter) and a number of
// consumers (expectConsumerNumUseFilter). As BloomFilter#createByFn of 4.9.8.
func NewBloom(errorPercent, consumers int) (*Bloom, error) {
	if errorPercent < 1 || errorPercent >= 100 {
		return nil, fmt.Errorf("maxErrorRateOfBloomFilter=%d: must be from 1 to 99", errorPercent)
	}
	if consumers < 1 || consumers > MaxConsumers {
		return nil, fmt.Errorf("expectConsumerNumUseFilter=%d: must be from 1 to %d", consumers, MaxConsumers)
	}
	rate := float64(errorPercent) / 100
	hashes := math.Ceil(math.Log(rate) / math.Log(.5))
	bits := math.Ceil(float64(consumers) * (math.Log(1/rate) / math.Log(2)) * (math.Log(math.E) / math.Log(2)))
	return &Bloom{hashes: int(hashes), bits: 8 * int(math.Ceil(bits/8))}, nil
}

// MaxConsumers bounds the bits of a message: a map has to fit into the 32 KiB of a unit of the consume-queue extension.
const MaxConsumers = 20_000

// Bits is the size of a message's map.
func (b *Bloom) Bits() int { return b.bits }

// Place is where a consumer's bits are, in the form of consumerFilter.json.
type Place struct {
	BitNum int         `json:"bitNum"` // the size of the map that the positions are in
	BitPos compat.Ints `json:"bitPos"`
}

// place is the place of a consumer group's subscription of a topic.
func (b *Bloom) place(group, topic string) *Place {
	return &Place{BitNum: b.bits, BitPos: b.positions(group + "#" + topic)}
}

// positions are the bits of a text: by two halves of its murmur3 hash, as BloomFilter#calcBitPositions.
func (b *Bloom) positions(text string) []int {
	hash := murmur3.Sum64([]byte(text)) // the first half of the 128 bits, as HashCode#asLong gives it
	first, second := int32(hash), int32(hash>>32)
	all := make([]int, b.hashes)
	for i := range all {
		h := first + int32(i+1)*second
		if h < 0 {
			h = ^h
		}
		all[i] = int(h) % b.bits
	}
	return all
}

// valid tells whether a place belongs to this filter.
func (b *Bloom) valid(p *Place) bool {
	if p == nil || p.BitNum != b.bits || len(p.BitPos) != b.hashes {
		return false
	}
	for _, at := range p.BitPos { // 4.9.8 believes what the file says
		if at < 0 || at >= b.bits {
			return false
		}
	}
	return true
}

// set sets the place's bits in a message's map.
func (p *Place) set(bits []byte) {
	for _, at := range p.BitPos {
		bits[at/8] |= 1 << (at % 8)
	}
}

// hit tells whether the place's bits are all set in a message's map. A map of another size says nothing.
func (p *Place) hit(bits []byte) bool {
	if len(bits)*8 != p.BitNum {
		return true
	}
	for _, at := range p.BitPos {
		if bits[at/8]&(1<<(at%8)) == 0 {
			return false
		}
	}
	return true
}
