package broker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/store/vfs"
)

// Whatever is wrong with the tables' files, a broker with an intact log starts, says what is lost, and keeps the
// damaged files.
func TestDamagedTables(t *testing.T) {
	p := startPathBroker(t, nil)
	p.send("TopicA", 0, "", "kept")
	p.stored("TopicA", 0, 0, 1)
	p.ask(protocol.UpdateAndCreateTopic, createTopic("TopicB", 2), nil)
	fs := p.fs
	cfg := p.Config()
	p.close()
	files := vfs.Files{FS: fs}
	names := []string{"topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json"}
	for _, name := range names {
		for _, suffix := range []string{"", ".bak"} {
			if err := files.WriteFile("/store/config/"+name+suffix, []byte("{\"torn"+suffix)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var log bytes.Buffer
	b, err := New(cfg, Options{FS: fs, Files: files, Clock: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.startPath(); err != nil { // opens delayOffset.json
		t.Fatal(err)
	}
	b.answerHeld()
	if err := b.closePath(); err != nil {
		t.Error(err)
	}
	if b.store.MaxOffset("TopicA", 0) != 1 {
		t.Error("the message is lost")
	}
	b.abandon()
	entries, err := fs.List("/store/config")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for _, suffix := range []string{"", ".bak"} {
			kept := false
			for _, e := range entries {
				if strings.HasPrefix(e.Name(), name+suffix+".damaged-") {
					text, err := files.ReadFile("/store/config/" + e.Name())
					kept = err == nil && string(text) == "{\"torn"+suffix
				}
			}
			if !kept {
				t.Errorf("%s%s is not kept", name, suffix)
			}
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 2*len(names) || strings.Count(log.String(), "consequence=") != n {
		t.Errorf("%d errors in the log\n%s", n, log.String())
	}
}
