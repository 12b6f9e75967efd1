package namesrv

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rocketd/protocol/body"
	"rocketd/protocol/header"
)

// Two brokers that take each other's place are told of; one that comes back elsewhere after it left is not.
func TestTwoBrokersOfOneName(t *testing.T) {
	var log bytes.Buffer
	table := newRouteTable(slog.New(slog.NewTextHandler(&log, nil)), time.Now)
	register := func(addr string) {
		table.register(&header.RegisterBrokerRequest{ClusterName: "C", BrokerName: "broker-a", BrokerAddr: addr}, &body.RegisterBrokerBody{}, nil)
	}
	register("10.0.0.1:10911")
	register("10.0.0.1:10911")
	table.unregister("broker-a", "10.0.0.1:10911")
	register("10.0.0.2:10911")
	if strings.Contains(log.String(), "level=WARN") {
		t.Errorf("log %s", log.String())
	}
	register("10.0.0.3:10911")
	for _, want := range []string{"level=WARN", "two brokers", "broker-a", "10.0.0.2:10911", "10.0.0.3:10911"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, log.String())
		}
	}
}

// What will go wrong later is said at the start.
func TestStartWarns(t *testing.T) {
	var log bytes.Buffer
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("kvConfigPath="+file+"/sub/kvConfig.json\norderMessageEnable=yes\nserverWorkerThreads=9\nmine=1\nserverSelectorThreads=3\norderMesageEnable=true\nserverSelectorThreads=4\nserverSelectorThreads=3\ntls.server.mod=enforcing\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg, err := ReadConfig(file, testConfig(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if err := unwritable(cfg.KvConfigPath); err == nil {
		t.Error("a file is no folder")
	}
	if err := unwritable(filepath.Join(t.TempDir(), "new", "kvConfig.json")); err != nil {
		t.Error(err)
	}
	cfg.KvConfigPath = filepath.Join(t.TempDir(), "gone", "kvConfig.json")
	s, err := New(cfg, slog.New(slog.NewTextHandler(&log, nil)), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Dir(cfg.KvConfigPath), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"key=orderMessageEnable value=yes", "keys=[mine]", "keys=[serverWorkerThreads]", "key=orderMesageEnable perhaps=orderMessageEnable", "key=tls.server.mod perhaps=tls.server.mode", "with different values; the last counts\" key=serverSelectorThreads", "KV configuration can't be saved"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, log.String())
		}
	}
}

func TestUnexpandedPath(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.KvConfigPath = "~/namesrv/kvConfig.json"
	if _, err := New(cfg, noLog, time.Now); err == nil || !strings.Contains(err.Error(), "kvConfigPath") {
		t.Errorf("%v", err)
	}
}

// A name server refuses to lose its table, and says what to do.
func TestDamagedKV(t *testing.T) {
	cfg := testConfig(t.TempDir())
	for _, name := range []string{cfg.KvConfigPath, cfg.KvConfigPath + ".bak"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := New(cfg, noLog, time.Now); err == nil || !strings.Contains(err.Error(), "move it and its .bak away") || !strings.Contains(err.Error(), cfg.KvConfigPath) {
		t.Errorf("%v", err)
	}
}
