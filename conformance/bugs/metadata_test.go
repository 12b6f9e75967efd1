//go:build conformance

package bugs

import (
	"os"
	"path/filepath"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// metadata are the files of config/ that hold something in TestBrokenMetadata.
var metadata = []string{"consumerOffset.json", "delayOffset.json", "topics.json", "subscriptionGroup.json"}

// damages are what befalls a file.
var damages = map[string]func([]byte) []byte{
	"half":       func(b []byte) []byte { return b[:len(b)/2] },
	"stale tail": func(b []byte) []byte { return append([]byte("{}"), b[2:]...) },
	"zeros":      func(b []byte) []byte { return make([]byte, len(b)) },
}

// H29 (#9328, #3401, #6096, #1498): with a broken metadata file the .bak counts. The official server does the same;
// zeros, and both files broken, which keeps it from starting, are tried with rocketd only: that starts, says so loudly, and
// the messages are there.
func TestBrokenMetadata(t *testing.T) {
	t.Parallel()
	c := target.Start(t, target.Options{})
	b := c.Brokers[0]
	s := dial(t, b.Addr)
	topic := s.topic("H29", 1)
	s.Done(message(topic, 0, "", "stays"))
	s.stored(topic, 0, 0, 1)
	later := s.topic("H29-later", 1)
	s.Done(message(later, 0, wire.Properties("DELAY", "1"), "x"))
	s.stored(later, 0, 0, 1)
	s.Done(wire.Request(200).WithBody([]byte(`{"groupName":"H29-group","consumeEnable":true,"consumeFromMinEnable":true,"retryQueueNums":1,"retryMaxTimes":7}`)))
	s.Done(wire.Request(15, "consumerGroup", "H29-group", "topic", topic, "queueId", "0", "commitOffset", "1"))
	stop(t, b)
	good := map[string][]byte{}
	for _, name := range metadata {
		content, err := os.ReadFile(filepath.Join(b.StoreDir, "config", name))
		if err != nil {
			t.Fatal(err)
		}
		good[name] = content
	}
	write := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.StoreDir, "config", name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	whole := func(what string) {
		t.Helper()
		s := dial(t, b.Addr)
		if ms := s.pull(topic, 0, 0, "*"); len(ms) != 1 || string(ms[0].Body) != "stays" {
			t.Errorf("%s: %d messages", what, len(ms))
		}
	}
	for what, damage := range damages {
		if what == "zeros" && official() {
			continue
		}
		for _, name := range metadata {
			write(name, damage(good[name]))
			write(name+".bak", good[name])
		}
		start(t, b)
		whole(what)
		s := dial(t, b.Addr)
		if got := s.Number("offset", wire.Request(14, "consumerGroup", "H29-group", "topic", topic, "queueId", "0")); got != 1 {
			t.Errorf("%s: the group's offset is %d", what, got)
		}
		stop(t, b)
	}
	if official() {
		return
	}
	for _, name := range metadata {
		write(name, damages["half"](good[name]))
		write(name+".bak", []byte("broken as well"))
	}
	start(t, b)
	s = dial(t, b.Addr)
	s.topic(topic, 1) // the administrator makes it again
	whole("all broken")
	s.Done(message(topic, 0, "", "goes on"))
	if ms := s.stored(topic, 0, 0, 2); len(ms) != 2 || ms[1].QueueOffset != 1 {
		t.Errorf("%d messages after a start without metadata", len(ms))
	}
}

func stop(t *testing.T, b *target.Broker) {
	t.Helper()
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, b *target.Broker) {
	t.Helper()
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
}
