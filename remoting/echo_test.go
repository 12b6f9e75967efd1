package remoting_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"rocketd/protocol"
	"rocketd/remoting/remotingtest"
)

// pipelined sends a thousand requests in pieces of some sizes, each on a connection of its own, and expects their answers in order.
func pipelined(t *testing.T, pieces []int, dial func() *remotingtest.Peer) {
	t.Helper()
	const n = 1000
	var all []byte
	for i := range int32(n) {
		code := echo
		if i%3 > 0 {
			code = run
		}
		all = protocol.AppendFrame(all, req(code, i, fmt.Sprint("Topic", i), make([]byte, i)))
	}
	var wg sync.WaitGroup
	for _, size := range pieces {
		p := dial()
		wg.Go(func() {
			for b := all; len(b) > 0; {
				k := min(size, len(b))
				p.Write(b[:k])
				b = b[k:]
			}
		})
		wg.Go(func() {
			for i := range int32(n) {
				a, err := p.TryReceive(remotingtest.Patience)
				if err != nil || a.Opaque != i || a.Remark != fmt.Sprint("Topic", i) {
					t.Errorf("pieces of %d, answer %d: %+v, %v", size, i, a, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// echoed sends bodies of some sizes and expects them back.
func echoed(t *testing.T, p *remotingtest.Peer, sizes ...int) {
	t.Helper()
	for _, size := range sizes {
		body := bytes.Repeat([]byte("0123456789abcdef"), size/16)
		go p.Send(req(echo, 1, "T", body))
		if a := p.Receive(); !bytes.Equal(a.Body, body) {
			t.Errorf("%d bytes came back as %d", len(body), len(a.Body))
		}
	}
}
