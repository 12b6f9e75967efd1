//go:build conformance

package bugs

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"rocketd/conformance/wire"
)

// element is one message of a batch, with a properties text of its own.
func element(properties, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(4*5+len(body)+2+len(properties)))
	b = append(b, make([]byte, 12)...)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(body))), body...)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(properties))), properties...)
}

// H01 (#3476, PR #3479): each message of a batch keeps exactly its own properties, whether their text ends with a separator or
// not, and gets CLUSTER; the tag finds all. The official server does the same.
func TestBatchProperties(t *testing.T) {
	s := dialShared(t)
	for _, c := range []struct{ name, own, end string }{
		{"no separator at the end", "", ""}, {"separator at the end", "", "\x02"},
		{"request has properties", "WAIT\x01true", ""}, {"both", "WAIT\x01true\x02", "\x02"},
	} {
		topic := s.topic("H01-"+strconv.Itoa(len(c.own))+"-"+strconv.Itoa(len(c.end)), 1)
		var body []byte
		want := make([]map[string]string, 3)
		for i := range 3 {
			want[i] = map[string]string{"KEYS": fmt.Sprintf("key%d", i), "user": fmt.Sprintf("value%d", i), "TAGS": "T"}
			pairs := wire.Properties("KEYS", want[i]["KEYS"], "user", want[i]["user"], "TAGS", "T")
			body = append(body, element(pairs+c.end, fmt.Sprint("body", i))...)
		}
		s.Done(batch(topic, 0, c.own, body))
		s.stored(topic, 0, 0, 3)
		got := s.pull(topic, 0, 0, "T")
		if len(got) != 3 {
			t.Fatalf("%s: tag T finds %d messages", c.name, len(got))
		}
		for i, m := range got {
			want[i]["CLUSTER"] = "DefaultCluster"
			if strings.Contains(c.own, "WAIT") {
				want[i]["WAIT"] = "true"
			}
			if !maps.Equal(m.Properties, want[i]) || string(m.Body) != fmt.Sprint("body", i) {
				t.Errorf("%s: message %d has %q, want %v", c.name, i, m.PropertiesText, want[i])
			}
		}
	}
}

// H02 (#2865): batches of many clients to one queue get the queue offsets 0 to N-1, each once, and the answer names as many
// message ids as the batch has messages. The official server does the same.
func TestConcurrentBatches(t *testing.T) {
	const clients, batches, size = 8, 200, 10
	s := dialShared(t)
	topic := s.topic("H02", 1)
	ids := make([][]string, clients)
	var wg sync.WaitGroup
	for c := range clients {
		conn, err := wire.Dial(shared.Brokers[0].Addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		wg.Go(func() {
			for b := range batches {
				var body []byte
				for i := range size {
					body = append(body, element("", fmt.Sprintf("%d-%d-%d", c, b, i))...)
				}
				answer, err := conn.Call(batch(topic, 0, "", body), patience)
				if err != nil || answer.Code != success {
					t.Errorf("client %d, batch %d: %v %v", c, b, answer, err)
					return
				}
				some := strings.Split(answer.Ext["msgId"], ",")
				if len(some) != size {
					t.Errorf("client %d, batch %d: message ids %q", c, b, answer.Ext["msgId"])
				}
				ids[c] = append(ids[c], some...)
			}
		})
	}
	wg.Wait()
	const all = clients * batches * size
	got := s.stored(topic, 0, 0, all)
	if len(got) != all {
		t.Fatalf("%d messages, %d were sent", len(got), all)
	}
	seen := make(map[string]bool, all)
	byId := make(map[string]bool, all)
	for i, m := range got {
		if m.QueueOffset != int64(i) {
			t.Fatalf("message %d has queue offset %d", i, m.QueueOffset)
		}
		seen[string(m.Body)], byId[m.MsgId()] = true, true
	}
	if len(seen) != all || len(byId) != all {
		t.Errorf("%d different messages, %d different ids, want %d", len(seen), len(byId), all)
	}
	for _, id := range slices.Concat(ids...) {
		if !byId[id] {
			t.Fatalf("the answer's id %s is of no message", id)
		}
	}
	if max := s.max(topic, 0); max != all {
		t.Errorf("the queue ends at %d", max)
	}
}
