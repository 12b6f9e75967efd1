package store

import (
	"math/bits"
	"sync"
)

// Bodies of GetResult come from pools by size, powers of two: a reader that is far behind takes 256 KiB with each pull,
// and as garbage these would keep the collector busy at the cost of everybody else. Smaller ones are left to the collector.
const (
	bodyMinBits = 13 // 8 KiB
	bodyMaxBits = 20 // 1 MiB
)

var bodyPools [bodyMaxBits - bodyMinBits + 1]sync.Pool // of *[]byte

// newBody returns an empty body with room for n bytes.
func newBody(n int) []byte {
	class := bits.Len(uint(max(n, 1) - 1))
	if class < bodyMinBits || class > bodyMaxBits {
		return make([]byte, 0, n)
	}
	if b, ok := bodyPools[class-bodyMinBits].Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 0, 1<<class)
}

// growBody returns a body with room for n bytes more.
func growBody(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	grown := append(newBody(len(b)+n), b...)
	RecycleBody(b)
	return grown
}

// RecycleBody takes back the Body of a GetResult whose bytes nobody looks at any more. It is the caller's choice: a body
// that does not come back is left to the collector.
func RecycleBody(b []byte) {
	class := bits.Len(uint(cap(b))) - 1
	if class < bodyMinBits || class > bodyMaxBits || cap(b) != 1<<class {
		return
	}
	kept := b[:0] // b itself would be an allocation even where it is not kept
	bodyPools[class-bodyMinBits].Put(&kept)
}
