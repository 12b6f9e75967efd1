package remoting

import (
	"math/bits"
	"sync"
)

// Chunks are the pieces of a write queue. They come from pools by size, powers of two; an answer that is
// larger than the largest gets a chunk of its own that is left to the collector.
const (
	chunkMinBits = 12 // 4 KiB
	chunkMaxBits = 20 // 1 MiB
)

type chunk struct{ b []byte }

var chunkPools [chunkMaxBits - chunkMinBits + 1]sync.Pool

// newChunk returns an empty chunk with room for n bytes.
func newChunk(n int) *chunk {
	if n > 1<<chunkMaxBits {
		return &chunk{make([]byte, 0, n)}
	}
	class := max(bits.Len(uint(max(n, 1)-1)), chunkMinBits)
	if c, ok := chunkPools[class-chunkMinBits].Get().(*chunk); ok {
		return c
	}
	return &chunk{make([]byte, 0, 1<<class)}
}

// free gives the chunk back. Its bytes may have grown beyond the room it was made for.
func (c *chunk) free() {
	class := bits.Len(uint(cap(c.b))) - 1 // the largest power of two that it holds
	if class < chunkMinBits || class > chunkMaxBits || cap(c.b) > 1<<chunkMaxBits {
		return
	}
	c.b = c.b[:0]
	chunkPools[class-chunkMinBits].Put(c)
}
