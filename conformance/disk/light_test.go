//go:build conformance

package disk

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// light are small files with light message queues.
var light = withConf(small, "enableLmq", "true", "enableMultiDispatch", "true")

// lightPlaces are the queues of lightRequests and how many messages each gets.
var lightPlaces = map[place]int64{{"Light", 1}: 63, {"%LMQ%a", 0}: 61, {"%LMQ%b%c", 0}: 30, {"Beside", 1}: 20, {"%LMQ%direct", 0}: 1}

// sendLight sends a message that names further queues; "" names none.
func sendLight(s *server, p place, n int, names string) {
	pairs := []string{"UNIQ_KEY", fmt.Sprintf("7F0000010D15%020X", n), "TAGS", "Tag" + strconv.Itoa(n%3)}
	if n%2 == 0 {
		pairs = append(pairs, "WAIT", "true")
	}
	if names != "" {
		pairs = append(pairs, "INNER_MULTI_DISPATCH", names)
	}
	s.Done(wire.Request(310, "a", "DiskProducer", "b", p.topic, "c", "TBW102", "d", "4", "e", strconv.Itoa(int(p.queueId)),
		"f", "0", "g", strconv.FormatInt(millis(), 10), "h", "0", "i", wire.Properties(pairs...), "j", "0", "k", "false", "m", "false").
		WithBody(fmt.Appendf(nil, "light %d", n)))
}

// lightRequests fills the queues of lightPlaces and commits offsets of groups with and without a light name.
func lightRequests(t *testing.T, s *server) {
	s.Done(createTopic("Light", 4))
	s.Done(createTopic("%LMQ%ignored", 4))
	s.Done(createGroup(t, "%LMQ%group"))
	for n := range 60 {
		names := "%LMQ%a"
		if n%2 == 0 {
			names += ",%LMQ%b%c"
		}
		if n%3 == 0 {
			names = "Beside," + names
		}
		sendLight(s, place{"Light", 1}, n, names)
	}
	sendLight(s, place{"Light", 1}, 60, "%LMQ%a,%LMQ%a,,")
	sendLight(s, place{"Light", 1}, 61, "")
	sendLight(s, place{"Light", 1}, 62, "Light")
	sendLight(s, place{"%LMQ%direct", 0}, 63, "")
	checkLight(t, s, 0)
	for _, group := range []string{"%LMQ%group", "Plain"} {
		for _, p := range []place{{"%LMQ%a", 0}, {"Light", 1}, {"Light", 2}} {
			s.Done(p.request(15).Set("consumerGroup", group).Set("commitOffset", strconv.Itoa(10+int(p.queueId))))
		}
	}
}

// checkLight pulls every queue: its messages in order, of which each says its place. more is how many were sent to %LMQ%a later.
func checkLight(t *testing.T, s *server, more int64) {
	t.Helper()
	for p, n := range lightPlaces {
		if p.topic == "%LMQ%a" || p.topic == "Light" {
			n += more
		}
		until(t, "the messages of "+p.String(), func() bool { return s.maxOffset(p) == n })
		if p.topic == "Beside" {
			continue // a queue without a topic, which nobody can pull
		}
		at := int64(0)
		for at < n {
			answer := s.Ask(pull(p, at))
			if answer.Code != 0 {
				t.Fatalf("pull of %s at %d: %d %s", p, at, answer.Code, answer.Remark)
			}
			for _, m := range split(t, answer.Body) {
				text := parsed(m.PropertiesText)
				got := m.QueueOffset
				if p.topic != m.Topic {
					names, offsets := strings.Split(text["INNER_MULTI_DISPATCH"], ","), strings.Split(text["INNER_MULTI_QUEUE_OFFSET"], ",")
					got, _ = strconv.ParseInt(offsets[slices.Index(names, p.topic)], 10, 64)
				}
				if got != at {
					t.Fatalf("%s at %d: the message of %s says %d: %v", p, at, m.Topic, got, text)
				}
				at++
			}
		}
	}
}

// checkLightOffsets asks for what lightRequests committed: a light group has one offset a topic, the last one.
func checkLightOffsets(t *testing.T, s *server) {
	t.Helper()
	for _, c := range []struct {
		group string
		p     place
		want  int64
	}{
		{"%LMQ%group", place{"%LMQ%a", 0}, 10}, {"%LMQ%group", place{"Light", 1}, 12}, {"%LMQ%group", place{"Light", 3}, 12},
		{"Plain", place{"Light", 1}, 11}, {"Plain", place{"Light", 2}, 12},
	} {
		if got := s.Number("offset", c.p.request(14).Set("consumerGroup", c.group)); got != c.want {
			t.Errorf("%s in %s is at %d, want %d", c.group, c.p, got, c.want)
		}
	}
}

// The same requests make the same files of light message queues, and each server goes on where the other has stopped, also
// when the queues have to be made again from the log.
func TestLightQueues(t *testing.T) {
	other := selected(t)
	var dirs []map[string][]byte
	for _, kinds := range [][]target.Kind{{target.Official, other}, {other, target.Official}} {
		r := newTurns(t, []*era{{kind: kinds[0]}}, light, 1)
		s := r.begin(&era{kind: kinds[0]})
		lightRequests(t, s)
		checkLightOffsets(t, s)
		stop := func() {
			if err := r.broker.Stop(); err != nil {
				t.Fatal(err)
			}
			s.hangUp()
		}
		stop()
		dirs = append(dirs, readMasked(t, r.broker.StoreDir))
		for n, kind := range []target.Kind{kinds[1], kinds[0], kinds[1]} {
			if n == 1 {
				if err := os.RemoveAll(filepath.Join(r.broker.StoreDir, "consumequeue")); err != nil {
					t.Fatal(err)
				}
			}
			r.broker.RunAs(kind)
			if err := r.broker.Start(); err != nil {
				t.Fatal(err)
			}
			s = connect(t, r.broker)
			checkLight(t, s, int64(n))
			checkLightOffsets(t, s)
			sendLight(s, place{"Light", 1}, 100+n, "%LMQ%a")
			checkLight(t, s, int64(n+1))
			stop()
		}
	}
	want, got := dirs[0], dirs[1]
	delete(want, "config/delayOffset.json") // of no delayed messages: written or not, by the time that has passed
	delete(got, "config/delayOffset.json")
	if a, b := slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)); !slices.Equal(a, b) {
		t.Errorf("files\n%q\nwant\n%q", b, a)
	}
	for name, w := range want {
		if g, ok := got[name]; ok && !bytes.Equal(g, w) {
			t.Errorf("%s differs:\n%q\nwant\n%q", name, shown(g), shown(w))
		}
	}
	if len(want["config/lmqConsumerOffset.json"]) == 0 {
		t.Error("no lmqConsumerOffset.json")
	}
	t.Logf("%d files compared", len(want))
}

func shown(b []byte) []byte { return b[:min(len(b), 1500)] }
