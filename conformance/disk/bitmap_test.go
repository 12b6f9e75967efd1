//go:build conformance

package disk

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// bits are small files with bit maps of filters.
var bits = withConf(extended, "enablePropertyFilter", "true", "enableCalcFilterBitMap", "true")

// sqlGroups are consumer groups and what they subscribe by SQL92; a message with number n has the property a=n.
var sqlGroups = map[string]string{"BitsOdd": "a IN ('1','3','5','7','9')", "BitsLow": "a BETWEEN 0 AND 4", "BitsNone": "a > 100"}

// The bit maps that one broker calculates are those of the other, and each filters by the other's.
func TestBitMaps(t *testing.T) {
	p := place{"Bits", 0}
	var units []string
	for _, kinds := range [][]target.Kind{{target.Official, selected(t)}, {selected(t), target.Official}} {
		eras := []*era{{kind: kinds[0]}, {kind: kinds[1]}}
		r := newTurns(t, eras, bits, 1)
		s := r.begin(eras[0])
		r.topic(s, p.topic, 1)
		for group, expression := range sqlGroups {
			s.Done(subscribe(t, group, p.topic, expression))
		}
		w := &sender{server: s, l: r.l, oneByOne: true}
		for n := range 60 {
			w.message(p, fmt.Sprintf("body %d", n), "a", strconv.Itoa(n%12), "TAGS", "Tag"+strconv.Itoa(n%3))
		}
		w.send()
		s.until(t, p, 60)
		s.hangUp()
		if err := r.broker.Stop(); err != nil {
			t.Fatal(err)
		}
		units = append(units, readUnits(t, r.broker.StoreDir, p, 512))

		r.broker.RunAs(kinds[1])
		if err := r.broker.Start(); err != nil {
			t.Fatal(err)
		}
		s = connect(t, r.broker)
		for group, want := range map[string]func(a int) bool{
			"BitsOdd": func(a int) bool { return a%2 == 1 && a < 10 }, "BitsLow": func(a int) bool { return a <= 4 }, "BitsNone": func(int) bool { return false },
		} {
			s.Done(subscribe(t, group, p.topic, sqlGroups[group]))
			var wanted []int64
			for n := range 60 {
				if want(n % 12) {
					wanted = append(wanted, int64(n))
				}
			}
			if got := s.pullAs(group, p, 60); !slices.Equal(got, wanted) {
				t.Errorf("%s on what %s wrote: %s gets %v, want %v", kinds[1], kinds[0], group, got, wanted)
			}
		}
		s.hangUp()
		if err := r.broker.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if units[0] != units[1] {
		t.Errorf("the units differ:\n%s\n%s", units[1], units[0])
	}
}

// subscribe is the heartbeat of a consumer that subscribes by SQL92.
func subscribe(t *testing.T, group, topic, expression string) *wire.Frame {
	t.Helper()
	body, err := json.Marshal(map[string]any{"clientID": "127.0.0.1@" + group, "producerDataSet": []any{}, "consumerDataSet": []any{map[string]any{
		"groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
		"subscriptionDataSet": []any{map[string]any{"classFilterMode": false, "topic": topic, "subString": expression, "tagsSet": []any{}, "codeSet": []any{},
			"subVersion": 1, "expressionType": "SQL92"}}, "unitMode": false}}})
	if err != nil {
		t.Fatal(err)
	}
	return wire.Request(34).WithBody(body)
}

// until waits until a queue has so many messages.
func (s *server) until(t *testing.T, p place, n int64) {
	t.Helper()
	until(t, "the queue is complete", func() bool { return s.maxOffset(p) == n })
}

// pullAs pulls all of a queue by a group's subscription and returns the offsets of what it gets.
func (s *server) pullAs(group string, p place, end int64) (offsets []int64) {
	s.t.Helper()
	for offset := int64(0); offset < end; {
		answer := s.Ask(wire.Request(11, "consumerGroup", group, "topic", p.topic, "queueId", strconv.Itoa(int(p.queueId)),
			"queueOffset", strconv.FormatInt(offset, 10), "maxMsgNums", "32", "sysFlag", "0", "commitOffset", "0",
			"suspendTimeoutMillis", "0", "subVersion", "1", "expressionType", "SQL92"))
		switch answer.Code {
		case 0:
			for _, m := range split(s.t, answer.Body) {
				offsets = append(offsets, m.QueueOffset)
			}
		case pullRetry:
		default:
			s.t.Fatalf("pull of %s offset %d: %d %s", p, offset, answer.Code, answer.Remark)
		}
		next, err := strconv.ParseInt(answer.Ext["nextBeginOffset"], 10, 64)
		if err != nil || next <= offset {
			s.t.Fatalf("pull of %s offset %d leads to %q", p, offset, answer.Ext["nextBeginOffset"])
		}
		offset = next
	}
	return offsets
}

// readUnits are the units of a queue as text, but for their times.
func readUnits(t *testing.T, dir string, p place, fileSize int64) string {
	t.Helper()
	var text bytes.Buffer
	for start := int64(0); ; start += fileSize {
		b := unitFile(t, filepath.Join(dir, "consumequeue_ext"), p, start, fileSize)
		if b == nil {
			break
		}
		for len(b) >= 20 {
			size := int16(binary.BigEndian.Uint16(b))
			if size <= 20 || int(size) > len(b) {
				fmt.Fprintf(&text, "%d ", size)
				break
			}
			fmt.Fprintf(&text, "%d:%x:%x ", size, b[2:10], b[18:size])
			b = b[size:]
		}
	}
	if text.Len() == 0 {
		t.Error("there are no units")
	}
	return text.String()
}
