package broker

import (
	"fmt"
	"testing"
)

// BenchmarkPullBySQL92 is one pull of 32 messages at most by an expression that takes 5 of 100: it looks at some 640.
func BenchmarkPullBySQL92(b *testing.B) {
	p := startPathBrokerOn(b, nil, func(c *Config) { c.EnablePropertyFilter = true })
	const messages = 3200
	for i := range messages {
		n := i % 100
		p.send("T", 0, fmt.Sprintf("UNIQ_KEY=UNIQKEYUNIQKEYUNIQKEYUNIQKEY0000|WAIT=true|TAGS=TagA|KEYS=order-%d|n=%d|region=%s|price=%d.25", n, n,
			[]string{"hangzhou", "shanghai", "beijing", "shenzhen"}[n%4], n), string(make([]byte, 128)))
	}
	p.stored("T", 0, 0, messages)
	f, err := p.compile("SQL92", "n BETWEEN 10 AND 19 AND region IN ('hangzhou', 'beijing') AND price > 5.5")
	if err != nil {
		b.Fatal(err)
	}
	looked, offset := int64(0), int64(0)
	b.ReportAllocs()
	for b.Loop() {
		got := p.store.Get("T", 0, offset, 32, f)
		if got.Count == 0 {
			b.Fatal("nothing found")
		}
		looked += got.NextBeginOffset - offset
		if offset = got.NextBeginOffset; offset >= messages-1000 {
			offset = 0
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(looked), "ns/message")
}
