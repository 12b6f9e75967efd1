package broker

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/store"
	"rocketd/store/vfs"
)

// The keys that are called without effect exist, and those that have one are not among them.
func TestWithoutEffect(t *testing.T) {
	cfg := DefaultConfig("/store")
	var all []string
	for _, kv := range cfg.Items() {
		all = append(all, kv.Key)
	}
	for key := range withoutEffect {
		if !slices.Contains(all, key) {
			t.Errorf("no key %s", key)
		}
	}
	if keys := cfg.ignored(); len(keys) != 0 {
		t.Errorf("defaults: %v", keys)
	}
}

// What a configuration says in vain is said once, in one line.
func TestOddities(t *testing.T) {
	cfg, err := ReadConfig(writeConf(t, "slaveReadEnable=true\nenableScheduleAsyncDeliver=true\nfilterServerNums=1\ntransientStorePoolEnable=true\n"+
		"aclEnable=yes\nbrokerId=3\nbrokerName=a.b\nfileReservedTime=48\nhighSpeedMode=false\n"), DefaultConfig("store"))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	brokerId := cfg.BrokerId
	cfg.complete()
	cfg.logOddities(slog.New(slog.NewTextHandler(&log, nil)), brokerId)
	for _, want := range []string{
		"keys=\"[enableScheduleAsyncDeliver filterServerNums slaveReadEnable transientStorePoolEnable]\"", "key=aclEnable value=yes",
		"brokerId becomes 0", "key=brokerName value=a.b",
	} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, log.String())
		}
	}
	if strings.Count(log.String(), "\n") != 4 {
		t.Errorf("log\n%s", log.String())
	}
	if !filepath.IsAbs(cfg.StorePathRootDir) {
		t.Errorf("store path %s", cfg.StorePathRootDir)
	}
}

// Keys that do not exist, each with the one that was likely meant, and values that a running broker would refuse.
func TestSlips(t *testing.T) {
	cfg, err := ReadConfig(writeConf(t, "flushDisktype=SYNC_FLUSH\nautoCreateTopicEnabel=false\nstorePathIndex=/x\nabortFile=/y\n=z\n"+
		"tls.server.mod=enforcing\ntls.server.mode=disabled\nbrokerPermission=9\ndeleteWhen=25;ab\nfileReservedTime=48\nflushDiskType=SYNC_FLUSH \nbrokerRole= ASYNC_MASTER \nbrokerName=a\n"+
		"regionId=x\nregionId=y\nregionId=x\ntraceOn=true\ntraceOn=true\nslaveReadEnable=false # no\n"), DefaultConfig("store"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.complete()
	if err := cfg.Validate(); err != nil || cfg.FlushDiskType != store.SyncFlush {
		t.Errorf("%v, flushDiskType=%q", err, cfg.FlushDiskType)
	}
	var log bytes.Buffer
	cfg.logOddities(slog.New(slog.NewTextHandler(&log, nil)), 0)
	for _, want := range []string{
		"key=flushDisktype perhaps=flushDiskType", "key=autoCreateTopicEnabel perhaps=autoCreateTopicEnable", "key=tls.server.mod perhaps=tls.server.mode",
		"keys=\"[storePathIndex abortFile]\"", "brokerPermission=9: must be from 0 to 7", "deleteWhen=25;ab: must be hours",
		"key=regionId", "a comment must have a line of its own",
	} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 8 {
		t.Errorf("%d lines\n%s", n, log.String())
	}
}

// A start that can't succeed leaves no store behind, and names what to change.
func TestNothingIsMade(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	for name, tt := range map[string]struct {
		set  func(*Config)
		want string
	}{
		"port":           {func(c *Config) { c.ListenPort = taken }, "--listenPort"},
		"fast port":      {func(c *Config) { c.ListenPort = taken + 2 }, "listenPort-2"},
		"tilde":          {func(c *Config) { c.StorePathRootDir = "~/store" }, "storePathRootDir"},
		"variable":       {func(c *Config) { c.StorePathRootDir = "${user.home}/store" }, "storePathRootDir"},
		"commit log":     {func(c *Config) { c.StorePathCommitLog = "$HOME/log" }, "storePathCommitLog"},
		"cluster":        {func(c *Config) { c.BrokerClusterName = "" }, "brokerClusterName"},
		"quoted":         {func(c *Config) { c.BrokerName = `"broker-a"` }, "brokerName"},
		"control":        {func(c *Config) { c.BrokerClusterName = "a\tb" }, "brokerClusterName"},
		"no store":       {func(c *Config) { c.StorePathRootDir = "" }, "storePathRootDir"},
		"scheme":         {func(c *Config) { c.NamesrvAddr = "http://x:1" }, "http://"},
		"one port short": {func(c *Config) { c.ListenPort = 2 }, "listenPort-2"},
	} {
		files := vfs.NewMem(time.Now)
		cfg := DefaultConfig("/store")
		cfg.BindAddress, cfg.BrokerIP1, cfg.ListenPort, cfg.PortHint = "127.0.0.1", "127.0.0.1", 0, "--listenPort"
		tt.set(&cfg)
		_, err := New(cfg, Options{FS: files, Files: vfs.Files{FS: files}, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := files.Stat("/store"); err == nil {
			t.Errorf("%s: something was made", name)
		}
	}
}

func TestExplain(t *testing.T) {
	cfg := DefaultConfig("/data/store")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fs.ErrPermission, "chown"}, {syscall.EACCES, "chown"}, {syscall.EROFS, "read-only"}, {syscall.ENOTDIR, "no folder"},
		{syscall.ENOSPC, "disk is full"}, {vfs.ErrLocked, "another broker is running on the store"},
	} {
		got := cfg.explain(fmt.Errorf("open: %w", tt.err), "--data").Error()
		for _, want := range []string{tt.want, "/data/store", "--data"} {
			if !strings.Contains(got, want) {
				t.Errorf("%v: no %q in %q", tt.err, want, got)
			}
		}
		if tt.err != vfs.ErrLocked && !strings.Contains(got, "uid") {
			t.Errorf("%v: no user in %q", tt.err, got)
		}
	}
	if err := cfg.explain(vfs.ErrLocked, storeKey); strings.Contains(err.Error(), "--data") {
		t.Errorf("%v", err)
	}
}

// Refused codes and unknown groups are told of once a minute, with the client.
func TestNotices(t *testing.T) {
	var n notices
	now := time.Now()
	if !n.due("a", now) || n.due("a", now.Add(59*time.Second)) || !n.due("b", now) || !n.due("a", now.Add(time.Minute)) {
		t.Error("not once a minute")
	}
	for i := range 2 * noticeBound {
		n.due(fmt.Sprint(i), now)
	}
	if len(n.last) > noticeBound || !n.due("new", now.Add(2*time.Minute)) {
		t.Errorf("%d things", len(n.last))
	}

	var log bytes.Buffer // slog guards it; read after Close
	files := vfs.NewMem(time.Now)
	cfg := DefaultConfig("/store")
	cfg.BindAddress, cfg.BrokerIP1, cfg.ListenPort = "127.0.0.1", "127.0.0.1", 0
	cfg.MappedFileSizeCommitLog, cfg.MaxHashSlotNum, cfg.MaxIndexNum = 16<<20, 5000, 20000
	cfg.AutoCreateSubscriptionGroup = false
	b, err := New(cfg, Options{FS: files, Files: vfs.Files{FS: files}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	p := &pathBroker{Broker: b, tb: t}
	p.peer = p.dial()
	for range 3 {
		p.ask(protocol.SuspendConsumer, nil, nil)
		p.beat(p.peer, "client-7", "Unknown", "TopicA")
	}
	me := p.peer.LocalAddr().String()
	p.close()
	for _, want := range []string{"request code refused", "code=209", "consumer of an unknown group", "group=Unknown clientId=client-7 client="} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, log.String())
		}
	}
	if strings.Count(log.String(), "client="+me) != 2 {
		t.Errorf("no %s in %s", me, log.String())
	}
}
