package broker

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/remoting/remotingtest"
	"rocketd/store/vfs"
)

// TestTopicNotSaved: while topics.json can't be written, sends that depend on a new topic are answered with an error
// that says why, others as ever; once it can be, the topic gets into the file without a further change.
func TestTopicNotSaved(t *testing.T) {
	t.Parallel()
	f := vfs.NewFault(vfs.NewMem(time.Now), nil)
	b := startPathBrokerOn(t, f, nil)
	b.failing = true
	b.send("Old", 0, "", "x")
	f.SetInject(func(op vfs.Op) error {
		if strings.Contains(op.Name, "topics.json") {
			return errors.New("on purpose")
		}
		return nil
	})
	for _, body := range []string{"creates it", "finds it"} {
		check(t, body, b.ask(protocol.SendMessage, sendHeader("New", 0, ""), []byte(body)), protocol.SystemError,
			"the topic[New] is not durable: topics.json can't be written:*", "MSG_REGION", "TRACE_ON")
	}
	b.send("Old", 0, "", "x")
	f.SetInject(nil)
	remotingtest.Eventually(t, "the topic is in the file", func() bool {
		data, err := b.files.ReadFile("/store/config/topics.json")
		return err == nil && strings.Contains(string(data), `"New"`)
	})
	b.send("New", 0, "", "counts")
}

// TestGroupNotSaved: while subscriptionGroup.json can't be written, no heartbeat of a new group is answered as if its group were
// durable, not the one that creates it nor a later one; other groups go on.
func TestGroupNotSaved(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"subscriptionGroup.json", "topics.json"} { // the latter has its retry topic
		f := vfs.NewFault(vfs.NewMem(time.Now), nil)
		b := startPathBrokerOn(t, f, nil)
		b.failing = true
		b.beat(b.peer, "c", "Old", "T")
		f.SetInject(func(op vfs.Op) error {
			if strings.Contains(op.Name, file) {
				return errors.New("on purpose")
			}
			return nil
		})
		for _, what := range []string{"creates it", "finds it", "finds it again"} {
			_, answer := b.beaten(b.peer, "c", "New", "T")
			check(t, file+": "+what, answer, protocol.SystemError, "the change could not be stored:*")
		}
		b.beat(b.peer, "c", "Old", "T")
		f.SetInject(nil)
		b.beat(b.peer, "c", "New", "T")
		data, err := b.files.ReadFile("/store/config/" + file)
		if err != nil || !strings.Contains(string(data), `"New"`) && !strings.Contains(string(data), `"%RETRY%New"`) {
			t.Errorf("%s: not in the file, error %v", file, err)
		}
	}
}

// TestOrphans: topics with messages that are not in the table are named at the start, and not created.
func TestOrphans(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem(time.Now)
	b := startPathBrokerOn(t, fs, nil)
	b.send("Kept", 0, "", "x")
	b.send("Forgotten", 0, "", "x")
	b.stored("Forgotten", 0, 0, 1)
	b.topics.Delete("Forgotten")
	b.close()
	var text bytes.Buffer
	b = startPathBrokerOn(t, fs, nil)
	b.log = slog.New(slog.NewTextHandler(&text, nil))
	b.warnOrphans()
	if got := text.String(); !strings.Contains(got, "count=1 topics=[Forgotten]") {
		t.Errorf("logged %q", got)
	}
	if _, ok := b.topics.Lookup("Forgotten"); ok {
		t.Error("created")
	}
}
