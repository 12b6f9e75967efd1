package crash

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"rocketd/conformance/wire"
)

// content is what a sender decides of a message. It is the same in each attempt.
type content struct {
	body             []byte
	tags, keys, note string
	noWait           bool // WAIT=false: the answer does not wait for the disk
}

var seed = maphash.MakeSeed()

// digest is a hash of what must come back.
func (c *content) digest() Digest {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, part := range []string{c.tags, c.keys, c.note} {
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		_, _ = h.WriteString(part)
	}
	return Digest{Body: maphash.Bytes(seed, c.body), Properties: h.Sum64()}
}

// newContent makes a message of one of the sizes that occur: mostly some bytes, rarely nothing or a lot.
func newContent(rng *rand.Rand, n, largest int) content {
	size := 0
	switch p := rng.IntN(100); {
	case p < 2:
	case p < 62:
		size = rng.IntN(200)
	case p < 90:
		size = 200 + rng.IntN(3800)
	case p < 99:
		size = 4000 + rng.IntN(28_000)
	default:
		size = 32_000 + rng.IntN(68_000)
	}
	body := make([]byte, min(size, largest))
	for i := range body {
		body[i] = byte(rng.Uint32())
	}
	c := content{body: body, tags: "Tag" + strconv.Itoa(n%3), note: fmt.Sprintf("%x", rng.Uint64()), noWait: rng.IntN(5) == 0}
	if rng.IntN(8) == 0 { // properties of a page and more
		c.note += strings.Repeat("-", rng.IntN(6000)) + "!"
	}
	if n%2 == 0 {
		c.keys = fmt.Sprintf("key-%d even", n)
	}
	return c
}

// properties are those of an attempt, as text.
func (c *content) properties(a Attempt, level int) string {
	pairs := []string{"UNIQ_KEY", a.String(), "TAGS", c.tags, "note", c.note}
	if c.keys != "" {
		pairs = append(pairs, "KEYS", c.keys)
	}
	if c.noWait {
		pairs = append(pairs, "WAIT", "false")
	}
	if level > 0 {
		pairs = append(pairs, "DELAY", strconv.Itoa(level))
	}
	return wire.Properties(pairs...)
}

// header is a send without its content.
func header(code int, p Place, properties string, batch bool) *wire.Frame {
	return wire.Request(code, "a", "crash-producer", "b", p.Topic, "c", "TBW102", "d", "2", "e", strconv.Itoa(int(p.Queue)), "f", "0",
		"g", strconv.FormatInt(time.Now().UnixMilli(), 10), "h", "0", "i", properties, "j", "0", "k", "false", "m", strconv.FormatBool(batch),
		"n", "broker-a")
}

// records are the messages of a pull's body, judged by themselves.
func records(p Place, body []byte) ([]Record, error) {
	messages, err := wire.Messages(body)
	if err != nil {
		return nil, err
	}
	out := make([]Record, len(messages))
	for i, m := range messages {
		r := Record{Offset: m.QueueOffset, PhyOffset: m.PhyOffset, StoreTimestamp: m.StoreTimestamp, Whole: maphash.Bytes(seed, body[:m.Size]),
			Prepared: m.PreparedTransactionOffset}
		if n, ok := m.Properties["TRANSACTION_CHECK_TIMES"]; ok {
			if r.Checks, err = strconv.Atoi(n); err != nil {
				return nil, err
			}
		}
		if due, ok := m.Properties["TIMER_OUT_MS"]; ok {
			if r.Due, err = strconv.ParseInt(due, 10, 64); err != nil {
				return nil, err
			}
		}
		body = body[m.Size:]
		c := content{body: m.Body, tags: m.Properties["TAGS"], keys: m.Properties["KEYS"], note: m.Properties["note"]}
		r.Digest = c.digest()
		switch {
		case m.Topic != p.Topic || m.QueueId != p.Queue:
			r.Damage = fmt.Sprintf("the message of %s %d", m.Topic, m.QueueId)
		case m.BodyCRC != crc32.ChecksumIEEE(m.Body)&0x7FFFFFFF:
			r.Damage = fmt.Sprintf("checksum %08x", m.BodyCRC)
		}
		if r.Attempt, err = parseAttempt(m.Properties["UNIQ_KEY"]); err != nil {
			r.Attempt, r.Damage = Attempt{-1, -1}, fmt.Sprintf("UNIQ_KEY is %q", m.Properties["UNIQ_KEY"])
		}
		out[i] = r
	}
	return out, nil
}
