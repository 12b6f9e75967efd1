package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"rocketd/conformance/wire"
)

// The frames of the load are made once and patched: a load generator that encodes costs the server's share of the CPU.

// firstOpaque makes every opaque ten digits long.
const firstOpaque = 1_000_000_000

// uniqKeyLength is the length of the ids that clients give to messages, which the server indexes.
const uniqKeyLength = 32

const markedKey = "UNIQKEYUNIQKEYUNIQKEYUNIQKEY0000"

// sendRequest is a send as the Java client makes it.
func sendRequest(topic string, queueId, body int) *wire.Frame {
	return wire.Request(310, "a", "bench-producer", "b", topic, "c", "TBW102", "d", "4", "e", strconv.Itoa(queueId), "f", "0",
		"g", strconv.FormatInt(time.Now().UnixMilli(), 10), "h", "0", "i", wire.Properties("UNIQ_KEY", markedKey, "WAIT", "true", "TAGS", "TagA"),
		"j", "0", "k", "false", "m", "false", "n", "broker-a").WithBody(bytes.Repeat([]byte("x"), body))
}

// delayed gives a message a delay level; 0 is none.
func delayed(f *wire.Frame, level int) *wire.Frame {
	if level == 0 {
		return f
	}
	return f.Set("i", wire.Properties("UNIQ_KEY", markedKey, "WAIT", "true", "TAGS", "TagA", "DELAY", strconv.Itoa(level)))
}

// timed has a message wait for a time; 0: it does not.
func timed(f *wire.Frame, after time.Duration) *wire.Frame {
	if after == 0 {
		return f
	}
	return f.Set("i", wire.Properties("UNIQ_KEY", markedKey, "WAIT", "true", "TAGS", "TagA", "TIMER_DELAY_MS", strconv.FormatInt(after.Milliseconds(), 10)))
}

// batchRequest is a batch of n bodies.
func batchRequest(topic string, queueId, n, body int) *wire.Frame {
	f := sendRequest(topic, queueId, 0).Set("m", "true").Set("i", wire.Properties("WAIT", "true"))
	f.Code = 320
	bodies := make([][]byte, n)
	for i := range bodies {
		bodies[i] = bytes.Repeat([]byte("x"), body)
	}
	return f.WithBody(wire.Batch(wire.Properties("UNIQ_KEY", markedKey, "WAIT", "true", "TAGS", "TagA"), bodies...))
}

func pullRequest(topic string, queueId int) *wire.Frame {
	return wire.Request(11, "consumerGroup", "bench-consumer", "topic", topic, "queueId", strconv.Itoa(queueId), "queueOffset", strconv.Itoa(firstOpaque),
		"maxMsgNums", "32", "sysFlag", "4", "commitOffset", "0", "suspendTimeoutMillis", "15000", "subscription", "*", "subVersion", "0",
		"expressionType", "TAG", "bname", "broker-a")
}

// template is an encoded frame with the places that differ from one message to the next.
type template struct {
	bytes  []byte
	opaque int   // where the ten digits of the opaque stand
	keys   []int // where the unique keys stand
	offset int   // where the ten digits of a pull's offset stand; -1 in a send
}

func newTemplate(f *wire.Frame) (*template, error) {
	f.Opaque = firstOpaque
	t := &template{bytes: f.Encode(), offset: -1}
	digits := strconv.Itoa(firstOpaque)
	mark := []byte(`"opaque":` + digits)
	if t.opaque = bytes.Index(t.bytes, mark) + len(`"opaque":`); t.opaque < len(`"opaque":`) {
		return nil, fmt.Errorf("no opaque in %q", t.bytes)
	}
	for at := 0; ; {
		i := bytes.Index(t.bytes[at:], []byte(markedKey))
		if i < 0 {
			break
		}
		t.keys = append(t.keys, at+i)
		at += i + uniqKeyLength
	}
	if i := bytes.Index(t.bytes, []byte(`"queueOffset":"`+digits)); i >= 0 {
		t.offset = i + len(`"queueOffset":"`)
	}
	return t, nil
}

// setOpaque writes an opaque of firstOpaque+n.
func (t *template) setOpaque(n int) { putDigits(t.bytes[t.opaque:], firstOpaque+n, 10) }

// setOffset writes a pull's offset, in ten digits: Java reads leading zeros.
func (t *template) setOffset(offset int64) { putDigits(t.bytes[t.offset:], int(offset), 10) }

// setKeys makes the unique keys those of messages n, n+1, ...
func (t *template) setKeys(n int) {
	for i, at := range t.keys {
		putDigits(t.bytes[at+uniqKeyLength-16:], n+i, 16)
	}
}

func putDigits(b []byte, n, digits int) {
	for i := digits - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

// response is what the load needs to know of an answer. body is valid until the next one is read.
type response struct {
	code   int
	opaque int // beyond firstOpaque
	header []byte
	body   []byte
}

// responses reads answers; one frame is looked at in place as long as it fits the buffer.
type responses struct {
	r     *bufio.Reader
	large []byte
}

func newResponses(r io.Reader) *responses { return &responses{r: bufio.NewReaderSize(r, 256<<10)} }

// ready tells whether a whole answer is here already, so that reading it will not block.
func (rs *responses) ready() bool {
	if rs.r.Buffered() < 4 {
		return false
	}
	head, err := rs.r.Peek(4)
	return err == nil && rs.r.Buffered() >= 4+int(binary.BigEndian.Uint32(head))
}

func (rs *responses) read() (response, error) {
	head, err := rs.r.Peek(8)
	if err != nil {
		return response{}, err
	}
	length, word := int(binary.BigEndian.Uint32(head)), binary.BigEndian.Uint32(head[4:])
	size := int(word & 0xFFFFFF)
	if length > 16<<20 || size > length-4 || word>>24 != 0 {
		return response{}, fmt.Errorf("answer of %d bytes, header word %#x", length, word)
	}
	var frame []byte
	if 4+length <= rs.r.Size() {
		if frame, err = rs.r.Peek(4 + length); err != nil {
			return response{}, err
		}
		if _, err = rs.r.Discard(4 + length); err != nil { // the bytes stay until the next read
			return response{}, err
		}
	} else {
		if cap(rs.large) < 4+length {
			rs.large = make([]byte, 4+length)
		}
		frame = rs.large[:4+length]
		if _, err := io.ReadFull(rs.r, frame); err != nil {
			return response{}, err
		}
	}
	r := response{header: frame[8 : 8+size], body: frame[8+size:]}
	code, ok := numberAfter(r.header, `"code":`)
	opaque, ok2 := numberAfter(r.header, `"opaque":`)
	if !ok || !ok2 {
		return r, fmt.Errorf("answer with header %.200q", r.header)
	}
	r.code, r.opaque = int(code), int(opaque)-firstOpaque
	return r, nil
}

// nextBeginOffset is where a pull's answer says to go on.
func (r response) nextBeginOffset() (int64, error) {
	n, ok := numberAfter(r.header, `"nextBeginOffset":"`)
	if !ok {
		return 0, fmt.Errorf("pull answered with %.200q", r.header)
	}
	return n, nil
}

func numberAfter(header []byte, mark string) (int64, bool) {
	i := strings.Index(string(header), mark) // no copy: the compiler sees that the string does not live on
	if i < 0 {
		return 0, false
	}
	n, digits := int64(0), 0
	for _, c := range header[i+len(mark):] {
		if c < '0' || c > '9' {
			break
		}
		n, digits = n*10+int64(c-'0'), digits+1
	}
	return n, digits > 0
}
