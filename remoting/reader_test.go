package remoting

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"rocketd/protocol"
	"rocketd/protocol/header"
)

// stream is a mix of requests with its expected answers: code and remark of each, in order.
func stream(form protocol.SerializeType) (b []byte, want []string) {
	var cmds []*Command
	add := func(c *Command, code protocol.ResponseCode, remark string) {
		c.Serialize = form
		cmds = append(cmds, c)
		if !c.IsOneway() {
			want = append(want, fmt.Sprintf("%d %d %s %d", c.Opaque, code, remark, len(c.Body)))
		}
	}
	add(request(echoInline, 1, "TopicA", nil), 0, "TopicA")
	add(request(echoRun, 2, "TopicB", []byte("body")), 0, "TopicB")
	add(request(echoRun2, 3, "Topic-ü", bytes.Repeat([]byte("x"), 300)), 0, "Topic-ü")
	oneway := request(echoInline, 4, "TopicC", []byte("nobody answers"))
	oneway.Flag = protocol.FlagOneway
	add(oneway, 0, "")
	add(request(echoRun, 5, "TopicD", []byte{0}), 0, "TopicD")
	add(request(echoInline, -6, "TopicE", []byte("last")), 0, "TopicE")
	return frames(cmds...), want
}

func describe(cmds []*Command) (got []string) {
	for _, c := range cmds {
		got = append(got, fmt.Sprintf("%d %d %s %d", c.Opaque, c.Code, c.Remark, len(c.Body)))
	}
	return got
}

// feed lets pieces arrive: at least one byte before each call of serve, as netpoll does.
func feed(c *Conn, in *arrivals) {
	for c.reason.Load() == nil && in.arrive() {
		if in.Len() > 0 {
			c.serve()
		}
	}
}

func cut(b []byte, size int) (pieces [][]byte) {
	for len(b) > size {
		pieces, b = append(pieces, b[:size]), b[size:]
	}
	return append(pieces, b)
}

// TestServePieces sends the same frames in pieces of every size.
func TestServePieces(t *testing.T) {
	for _, form := range []protocol.SerializeType{protocol.JSON, protocol.Binary} {
		b, want := stream(form)
		for size := 1; size <= len(b); size++ {
			in, out := &arrivals{pieces: cut(b, size)}, &recorder{}
			c := newMemoryConn(echoMux(nil), in, out, nil)
			feed(c, in)
			answers := out.commands(t)
			if got := describe(answers); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Fatalf("form %d, pieces of %d:\n%s\nwant\n%s", form, size, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			for _, a := range answers {
				if a.Serialize != form || !a.IsResponse() || a.Version != protocol.ServerVersion || a.Language != protocol.Java {
					t.Fatalf("form %d: answer %+v", form, a)
				}
			}
			if got := c.consumed.Load(); got != int64(len(b)) {
				t.Fatalf("consumed %d of %d bytes", got, len(b))
			}
		}
	}
}

// TestHalfFrameAnswersFirst sees that what is complete is answered before the wait for the rest.
func TestHalfFrameAnswersFirst(t *testing.T) {
	first := frames(request(echoInline, 1, "TopicA", nil), request(echoRun, 2, "TopicB", nil))
	second := frames(request(echoInline, 3, "TopicC", []byte("rest")))
	for split := 1; split < len(second); split++ {
		in := &arrivals{pieces: [][]byte{append(first[:len(first):len(first)], second[:split]...), second[split:]}}
		out := &recorder{}
		c := newMemoryConn(echoMux(nil), in, out, nil)
		in.onWait = func() {
			if n := len(out.commands(t)); n != 2 {
				t.Fatalf("split %d: %d answers before the wait, want 2", split, n)
			}
		}
		feed(c, in)
		if n := len(out.commands(t)); n != 3 {
			t.Fatalf("split %d: %d answers, want 3", split, n)
		}
	}
}

// TestOneFlushForARun sees that the answers of pipelined requests are written together.
func TestOneFlushForARun(t *testing.T) {
	var b []byte
	for i := range int32(30) {
		b = append(b, frames(request(echoRun, i, "TopicA", nil))...)
	}
	in, out := &arrivals{pieces: [][]byte{b}}, &recorder{}
	feed(newMemoryConn(echoMux(nil), in, out, nil), in)
	if n := len(out.commands(t)); n != 30 || out.sends != 1 {
		t.Errorf("%d answers in %d writes, want 30 in 1", n, out.sends)
	}
}

func TestBadFrames(t *testing.T) {
	good := frames(request(echoInline, 1, "TopicA", nil))
	tests := []struct {
		name  string
		bytes string
	}{
		{"length 0", "\x00\x00\x00\x00"},
		{"length 3", "\x00\x00\x00\x03\x00\x00\x00"},
		{"negative length", "\xff\xff\xff\xff\x00\x00\x00\x00"},
		{"larger than the largest frame", "\x00\xff\xff\xfd\x00\x00\x00\x10"}, // L+4 = 16777217
		{"header beyond the frame", "\x00\x00\x00\x06\x00\x00\x00\x03{}"},
		{"serialize type 2", "\x00\x00\x00\x06\x02\x00\x00\x02{}"},
		{"no header", "\x00\x00\x00\x04\x00\x00\x00\x00"},
		{"no JSON", "\x00\x00\x00\x06\x00\x00\x00\x02xx"},
		{"cut binary header", "\x00\x00\x00\x06\x01\x00\x00\x02\x00\x0a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, before := range [][]byte{nil, good} {
				in, out := &arrivals{pieces: [][]byte{append(before[:len(before):len(before)], test.bytes...)}}, &recorder{}
				c := newMemoryConn(echoMux(nil), in, out, nil)
				feed(c, in)
				if reason := c.reason.Load(); reason == nil || *reason != ClosedBadFrame {
					t.Errorf("reason %v", reason)
				}
				want := 0
				if before != nil {
					want = 1
				}
				if n := len(out.commands(t)); n != want {
					t.Errorf("%d answers, want %d", n, want)
				}
				if n := c.owner.stats.badFrames.Load(); n != 1 {
					t.Errorf("%d bad frames counted", n)
				}
				eventually(t, "socket closed", func() bool { return !out.IsActive() })
			}
		})
	}
}

// TestLargestFrame takes the largest frame and refuses the next larger one before it is there.
func TestLargestFrame(t *testing.T) {
	head := len(protocol.AppendHead(nil, request(echoInline, 1, "T", nil)))
	largest := frames(request(echoInline, 1, "T", make([]byte, protocol.MaxFrame-head)))
	if len(largest) != protocol.MaxFrame {
		t.Fatalf("%d bytes", len(largest))
	}
	in, out := &arrivals{pieces: [][]byte{largest}}, &recorder{}
	feed(newMemoryConn(echoMux(nil), in, out, nil), in)
	if n := len(out.commands(t)); n != 1 {
		t.Errorf("%d answers", n)
	}
}

// TestIdleConnectionKeepsNothing: neither many ext fields nor a large header stay with a connection that has answered.
func TestIdleConnectionKeepsNothing(t *testing.T) {
	many := request(echoInline, 1, "T", nil)
	for range 100_000 {
		many.Fields = append(many.Fields, protocol.Field{Key: "a", Value: "b"})
	}
	few := request(echoInline, 2, "T", nil)
	for range slabFields + 1 {
		few.Fields = append(few.Fields, protocol.Field{Key: "a", Value: "b"})
	}
	large := request(echoInline, 3, strings.Repeat("T", 1<<20), nil)
	for _, form := range []protocol.SerializeType{protocol.JSON, protocol.Binary} {
		in, out := &arrivals{}, &recorder{}
		c := newMemoryConn(echoMux(nil), in, out, nil)
		for _, cmd := range []*Command{request(echoInline, 0, "T", make([]byte, 1000)), many, few, large} {
			cmd.Serialize = form
			before := cap(c.slab)
			in.pieces = [][]byte{frames(cmd)}
			feed(c, in)
			if n := cap(c.slab); n > slabFields || before > 0 && n != before {
				t.Errorf("form %d, opaque %d: the slab has room for %d fields, before %d", form, cmd.Opaque, n, before)
			}
			if c.scratch.Fields != nil || c.scratch.Body != nil || c.scratch.Remark != "" {
				t.Errorf("form %d, opaque %d: the last request is still there", form, cmd.Opaque)
			}
		}
		if answers := out.commands(t); len(answers) != 4 || answers[3].Code != 0 {
			t.Errorf("form %d: %d answers", form, len(answers))
		}
	}
}

func TestFrameMaxLength(t *testing.T) {
	b := frames(request(echoInline, 1, "TopicA", []byte("0123456789")))
	for _, limit := range []int{len(b) - 1, len(b)} {
		in, out := &arrivals{pieces: [][]byte{b}}, &recorder{}
		feed(newMemoryConn(echoMux(nil), in, out, func(l *limits) { l.frame = limit }), in)
		if got, want := len(out.commands(t)), limit-len(b)+1; got != want {
			t.Errorf("limit %d, frame of %d bytes: %d answers, want %d", limit, len(b), got, want)
		}
	}
}

// TestAnswersOfFailures looks at what becomes of errors, panics, unknown codes and unreadable fields.
func TestAnswersOfFailures(t *testing.T) {
	noNumber := request(echoInline, 5, "TopicA", nil)
	noNumber.Fields[1].Value = "seven"
	noNumberRun := request(echoRun, 6, "TopicA", nil)
	noNumberRun.Header = nil
	noNumberRun.SetField("topic", "T")
	noNumberRun.SetField("queueId", "x")
	tests := []struct {
		req    *Command
		code   protocol.ResponseCode
		remark string
	}{
		{request(fails, 1, "TopicA", nil), protocol.TopicNotExist, "no such topic"},
		{request(panics, 2, "TopicA", nil), protocol.SystemError, "boom"},
		{request(4711, 3, "TopicA", nil), protocol.RequestCodeNotSupported, "unknown"},
		{request(-1, 4, "TopicA", nil), protocol.RequestCodeNotSupported, "unknown"},
		{noNumber, protocol.SystemError, "queueId"},
		{noNumberRun, protocol.SystemError, "queueId"},
		{request(echoInline, 7, "TopicA", nil), protocol.Success, "TopicA"},
	}
	in, out := &arrivals{}, &recorder{}
	c := newMemoryConn(echoMux(nil), in, out, nil)
	for _, test := range tests {
		in.pieces = [][]byte{frames(test.req)}
		feed(c, in)
	}
	answers := out.commands(t)
	if len(answers) != len(tests) {
		t.Fatalf("%d answers, want %d", len(answers), len(tests))
	}
	for i, test := range tests {
		a := answers[i]
		if a.Opaque != test.req.Opaque || a.Code != int32(test.code) || !strings.Contains(a.Remark, test.remark) {
			t.Errorf("request %d: opaque %d, code %d, remark %q; want %d, %q", test.req.Opaque, a.Opaque, a.Code, a.Remark, test.code, test.remark)
		}
		if test.code != protocol.Success && a.HasFields {
			t.Errorf("request %d: an error has extFields", test.req.Opaque)
		}
	}
	// The same as oneway requests: nothing.
	out.buf = nil
	for _, test := range tests {
		test.req.Flag |= protocol.FlagOneway
		in.pieces = [][]byte{frames(test.req)}
		feed(c, in)
	}
	if n := len(out.commands(t)); n != 0 {
		t.Errorf("%d answers to oneway requests", n)
	}
}

// TestRunBounds sees that neighbours come together, in order, at most runMaxCalls of them, and that
// other requests keep their place.
func TestRunBounds(t *testing.T) {
	var sizes []int
	var order []int32
	m := NewMux(nil)
	HandleRun(m, []protocol.RequestCode{echoRun, echoRun2}, func(calls []*Call, _ []*header.SendMessageRequest) {
		sizes = append(sizes, len(calls))
		for _, c := range calls {
			order = append(order, c.Command().Opaque)
			c.Reply(c.Success(nil))
		}
	})
	Handle(m, echoInline, Inline, func(c *Call, _ *header.GetMaxOffsetRequest) (*Command, error) {
		order = append(order, c.Command().Opaque)
		return c.Success(nil), nil
	})
	var b []byte
	for i := range int32(600) {
		code := echoRun
		if i%2 == 1 {
			code = echoRun2
		}
		if i == 10 {
			code = echoInline
		}
		b = append(b, frames(request(code, i, "T", nil))...)
	}
	in, out := &arrivals{pieces: [][]byte{b}}, &recorder{}
	feed(newMemoryConn(m, in, out, nil), in)
	total := 0
	for _, n := range sizes {
		if total += n; n > runMaxCalls {
			t.Errorf("%d calls at once", n)
		}
	}
	if sizes[0] != 10 || total != 599 || len(sizes) > 5 {
		t.Errorf("sizes of runs %v", sizes)
	}
	for i, opaque := range order {
		if opaque != int32(i) {
			t.Fatalf("request %d came at place %d", opaque, i)
		}
	}
	for i, a := range out.commands(t) {
		if a.Opaque != int32(i) {
			t.Fatalf("answer %d came at place %d", a.Opaque, i)
		}
	}
}

// recordedFrames are frames without bodies, with the headers that official software sent, ten in a stream.
func recordedFrames(tb testing.TB) (streams [][]byte) {
	tb.Helper()
	data, err := os.ReadFile("../protocol/testdata/headers.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(data) {
		var g struct{ Header, HeaderBase64 string }
		if err := json.Unmarshal(line, &g); err != nil {
			tb.Fatal(err)
		}
		form, header := protocol.JSON, []byte(g.Header)
		if g.HeaderBase64 != "" {
			form = protocol.Binary
			if header, err = base64.StdEncoding.DecodeString(g.HeaderBase64); err != nil {
				tb.Fatal(err)
			}
		}
		if n%10 == 0 {
			streams = append(streams, nil)
		}
		n++
		s := &streams[len(streams)-1]
		*s = binary.BigEndian.AppendUint32(*s, uint32(4+len(header)))
		*s = binary.BigEndian.AppendUint32(*s, uint32(form)<<24|uint32(len(header)))
		*s = append(*s, header...)
	}
	return streams
}

// FuzzServe sends any bytes in pieces: no panic, no endless loop, and the same answers whatever the
// pieces are.
func FuzzServe(f *testing.F) {
	for _, form := range []protocol.SerializeType{protocol.JSON, protocol.Binary} {
		b, _ := stream(form)
		f.Add(b, uint8(7))
		f.Add(b[:len(b)-3], uint8(100))
	}
	for _, b := range recordedFrames(f) {
		f.Add(b, uint8(50))
	}
	f.Add([]byte("\x00\x00\x00\x06\x00\x00\x00\x02{}"), uint8(1))
	f.Add([]byte("\x16\x03\x01"), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		run := func(size int) ([]byte, CloseReason) {
			in, out := &arrivals{pieces: cut(b, size)}, &recorder{}
			c := newMemoryConn(echoMux(make(chan *Call, 1+len(b)/8)), in, out, func(l *limits) { l.frame = 1 << 16 })
			feed(c, in)
			out.mu.Lock()
			defer out.mu.Unlock()
			if reason := c.reason.Load(); reason != nil {
				return out.buf, *reason
			}
			return out.buf, ""
		}
		whole, reason := run(len(b) + 1)
		decodeAll(t, whole)
		pieces, reason2 := run(int(size) + 1)
		if !bytes.Equal(whole, pieces) || reason != reason2 {
			t.Errorf("in one piece %q (%s), in pieces %q (%s)", whole, reason, pieces, reason2)
		}
	})
}
