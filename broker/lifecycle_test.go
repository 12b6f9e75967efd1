package broker

import (
	"context"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/remoting/remotingtest"
	"rocketd/store/vfs"
)

// A stopping broker answers held pulls at once: nothing found, go on where you were.
func TestCloseAnswersHeldPulls(t *testing.T) {
	t.Parallel()
	p := startPathBroker(t, nil)
	p.send("TopicA", 0, "", "x")
	p.stored("TopicA", 0, 0, 1)
	pull := pullHeader("TopicA", 0, 1)
	pull.SysFlag |= pullSuspend
	pull.SuspendTimeoutMillis = 3_600_000 // the answer comes by the stop alone
	req := p.request(protocol.PullMessage, pull, nil)
	p.peer.Send(req)
	remotingtest.Eventually(t, "the pull is held", func() bool { return p.path.held.Held() == 1 })
	p.close()
	a := p.peer.Receive()
	if a.Opaque != req.Opaque || a.Code != int32(protocol.PullNotFound) || field(t, a, "nextBeginOffset") != "1" {
		t.Errorf("got %+v", a)
	}
	p.peer.Closed()
}

// A stop whose time the store has used up is in order all the same: idle peers get a moment of their own.
func TestCloseLate(t *testing.T) {
	p := startPathBroker(t, nil)
	p.send("TopicA", 0, "", "x")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Close(ctx); err != nil {
		t.Error(err)
	}
	p.peer.Closed()
	p.Broker = nil
}

// Neither half a frame nor a peer that reads nothing holds up a stop for longer than its context.
func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	p := startPathBroker(t, nil)
	half := p.dial()
	half.SendBytes([]byte{0, 0, 1})
	p.send("TopicA", 0, "", strings.Repeat("x", 1<<20))
	p.stored("TopicA", 0, 0, 1)
	deaf := p.dial()
	for range 40 { // 40 MiB that nobody reads
		deaf.Send(p.request(protocol.PullMessage, pullHeader("TopicA", 0, 0), nil))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	begin := time.Now()
	_ = p.Close(ctx)                                             // may say that a peer did not take its answers
	if took := time.Since(begin); took > remotingtest.Patience { // it would never end
		t.Errorf("the stop took %v", took)
	}
	half.Close()
	deaf.Close()
	p.Broker = nil
}

func TestRestartKeepsEverything(t *testing.T) {
	t.Parallel()
	p := startPathBroker(t, nil)
	p.ask(protocol.UpdateAndCreateTopic, createTopic("TopicA", 2), nil)
	p.send("Auto", 3, "", "auto")
	p.send("TopicA", 1, "KEYS=k", "one")
	p.beat(p.peer, "c1", "G", "TopicA")
	p.stored("TopicA", 1, 0, 1)
	p.offsets.Commit(p.anyone(), "G", "TopicA", 1, 1)
	topics, version := p.topics.All()
	groups := p.groups.Wrapper()
	fs := p.fs
	p.close()

	q := startPathBrokerOn(t, fs, nil)
	again, versionAgain := q.topics.All()
	if len(again) != len(topics) || versionAgain != version {
		t.Errorf("%d topics of version %+v, want %d of %+v", len(again), versionAgain, len(topics), version)
	}
	for _, c := range topics {
		if got, ok := q.topics.Lookup(c.TopicName); !ok || !reflect.DeepEqual(got, c) {
			t.Errorf("topic %s: %+v, want %+v", c.TopicName, got, c)
		}
	}
	if got := q.groups.Wrapper(); len(got.SubscriptionGroupTable) != len(groups.SubscriptionGroupTable) || got.DataVersion != groups.DataVersion {
		t.Errorf("groups %+v, want %+v", got, groups)
	}
	if got, _ := q.offsets.Query("G", "TopicA", 1); got != 1 {
		t.Errorf("offset %d, want 1", got)
	}
	if m := q.stored("TopicA", 1, 0, 1); len(m) != 1 || string(m[0].Body) != "one" {
		t.Errorf("messages %+v", m)
	}
}

// A second broker on the folder does not start, says why, and touches nothing.
func TestSecondBroker(t *testing.T) {
	p := startPathBroker(t, nil)
	p.ask(protocol.UpdateAndCreateTopic, createTopic("TopicA", 2), nil)
	files := vfs.Files{FS: p.fs}
	before, err := files.ReadFile("/store/config/topics.json")
	if err != nil {
		t.Fatal(err)
	}
	cfg := p.Config()
	_, err = New(cfg, Options{FS: p.fs, Files: files, Log: remotingtest.Log(t)})
	if err == nil || !strings.Contains(err.Error(), "another broker is running on the store /store") || !strings.Contains(err.Error(), "storePathRootDir") {
		t.Fatalf("error %v", err)
	}
	if after, err := files.ReadFile("/store/config/topics.json"); err != nil || !slices.Equal(after, before) {
		t.Errorf("topics.json has changed (%v)", err)
	}
	p.send("TopicA", 0, "", "still alive")
}

// A start that fails because a port is taken can be closed, and leaves the folder to the next.
func TestStartFails(t *testing.T) {
	fs := vfs.NewMem(time.Now)
	cfg := DefaultConfig("/store")
	l, err := net.Listen("tcp", "127.0.0.1:0") // taken after New has looked
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	cfg.BindAddress, cfg.BrokerIP1, cfg.ListenPort = "127.0.0.1", "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	cfg.MappedFileSizeCommitLog, cfg.MaxHashSlotNum, cfg.MaxIndexNum = 16<<20, 5000, 20000
	b, err := New(cfg, Options{FS: fs, Files: vfs.Files{FS: fs}, Log: remotingtest.Log(t)})
	if err != nil {
		t.Fatal(err)
	}
	if l, err = net.Listen("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := b.Start(); err == nil || !strings.Contains(err.Error(), "listenPort") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), remotingtest.Patience)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Error(err)
	}
	startPathBrokerOn(t, fs, nil)
}

// The whole of a configuration is checked before anything is opened.
func TestNewRefuses(t *testing.T) {
	fs := vfs.NewMem(time.Now)
	cfg := DefaultConfig("/store")
	cfg.AclEnable = true
	if _, err := New(cfg, Options{FS: fs, Files: vfs.Files{FS: fs}, Log: remotingtest.Log(t)}); err == nil {
		t.Error("aclEnable=true starts")
	}
	if _, err := fs.Stat("/store"); err == nil {
		t.Error("something was made")
	}
}
