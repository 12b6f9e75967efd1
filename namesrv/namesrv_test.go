package namesrv

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rocketd/protocol"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

// TestMain demands that every server of these tests has ended its goroutines. netpoll's pollers live as long as
// the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/cloudwego/netpoll.(*defaultPoll).Wait"))
}

var noLog = slog.New(slog.DiscardHandler)

// testConfig is a configuration on a free port, with its files in dir.
func testConfig(dir string) Config {
	cfg := DefaultConfig(dir)
	cfg.BindAddress, cfg.ListenPort = "127.0.0.1", 0
	return cfg
}

// start serves cfg until the test ends, or stop is called.
func start(tb testing.TB, cfg Config) (s *Server, stop func()) {
	tb.Helper()
	s, err := New(cfg, noLog, time.Now)
	if err != nil {
		tb.Fatal(err)
	}
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), remotingtest.Patience)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			tb.Error(err)
		}
	}
	tb.Cleanup(stop)
	return s, stop
}

// TestCodes: exactly the codes that spec's table says a name server serves have a route.
func TestCodes(t *testing.T) {
	want := []protocol.RequestCode{100, 101, 102, 103, 104, 105, 106, 205, 206, 216, 219, 224, 304, 311, 312, 313, 318, 319, 322, 327}
	m := remoting.NewMux(nil)
	new(Server).handle(m)
	if got := m.Codes(); !slices.Equal(got, want) {
		t.Errorf("routed %v, want %v", got, want)
	}
}

// TestFiles: what is put lies in the official file before the answer, and is there again after a restart.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "ns.conf")
	if err := os.WriteFile(conf, []byte("listenPort=0\nbindAddress=127.0.0.1\nsomeKey=kept\nkvConfigPath="+dir+"/kv/kvConfig.json\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg, err := ReadConfig(conf, DefaultConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	s, stop := start(t, cfg)
	p := remotingtest.Dial(t, s.Addr())
	put := protocol.NewRequest(protocol.PutKVConfig, nil, nil)
	put.SetField("namespace", "ORDER_TOPIC_CONFIG")
	put.SetField("key", "TopicA")
	put.SetField("value", "broker-a:4")
	if a := p.Ask(put); a.Code != 0 {
		t.Fatalf("put: %+v", a)
	}
	if got, err := os.ReadFile(cfg.KvConfigPath); err != nil || string(got) != `{"configTable":{"ORDER_TOPIC_CONFIG":{"TopicA":"broker-a:4"}}}` {
		t.Errorf("kvConfig.json: %s, %v", got, err)
	}
	if a := p.Ask(protocol.NewRequest(protocol.UpdateNamesrvConfig, nil, []byte("orderMessageEnable=true\nsomeKey=changed\nunknown=1\n"))); a.Code != 0 {
		t.Fatalf("update: %+v", a)
	}
	if got, err := os.ReadFile(conf); err != nil || string(got) != "listenPort=0\nbindAddress=127.0.0.1\nsomeKey=changed\nkvConfigPath="+dir+"/kv/kvConfig.json\norderMessageEnable=true\n" {
		t.Errorf("the file is now %q, %v", got, err)
	}
	stop()

	again, err := ReadConfig(conf, DefaultConfig(dir))
	if err != nil || !again.OrderMessageEnable || again.ServerWorkerThreads != 8 || len(again.extra) != 1 || again.extra[0].Value != "changed" {
		t.Fatalf("read again %+v, %v", again, err)
	}
	s, _ = start(t, again)
	p = remotingtest.Dial(t, s.Addr())
	list := protocol.NewRequest(protocol.GetKVListByNamespace, nil, nil)
	list.SetField("namespace", "ORDER_TOPIC_CONFIG")
	if a := p.Ask(list); string(a.Body) != `{"table":{"TopicA":"broker-a:4"}}` {
		t.Errorf("list after restart: %+v", a)
	}
}

func TestKVFileDamaged(t *testing.T) {
	dir := t.TempDir()
	cfg := testConfig(dir)
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(cfg.KvConfigPath, "\x00\x00\x00")
	if _, err := New(cfg, noLog, time.Now); err == nil {
		t.Error("a damaged file without a backup was taken")
	}
	write(cfg.KvConfigPath+".bak", `{configTable:{"NS":{"k":"v"},"E":null}}`)
	s, err := New(cfg, noLog, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := s.kv.get("NS", "k"); v != "v" || !ok {
		t.Errorf("from the backup: %q, %v", v, ok)
	}
	s.kv.put("E", "k", "v", true)
	if err := s.Close(context.Background()); err != nil { // never started
		t.Error(err)
	}
}

func TestConfigRefused(t *testing.T) {
	dir := t.TempDir()
	for text, refused := range map[string]bool{
		"clusterTest=true": true, "tls.server.mode=strict": true, "tls.server.mode=enforcing": false, "tls.server.mode=enforcing\ntls.config.file=/nowhere": true, "listenPort=x": true, "a=\\u1": true, "tls.server.mode=permissive": false, "clusterTest=false": false,
	} {
		path := filepath.Join(dir, "ns.conf")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cfg, err := ReadConfig(path, testConfig(dir))
		if err == nil {
			_, err = New(cfg, noLog, time.Now)
		}
		if (err != nil) != refused {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ReadConfig(filepath.Join(dir, "none"), testConfig(dir)); err == nil {
		t.Error("a missing file was read")
	}
}

func TestStartOnTakenPort(t *testing.T) {
	s, stop := start(t, testConfig(t.TempDir()))
	cfg := testConfig(t.TempDir())
	cfg.ListenPort, cfg.PortHint = s.Port(), "--namesrvPort"
	if _, err := New(cfg, noLog, time.Now); err == nil || !strings.Contains(err.Error(), "--namesrvPort") {
		t.Errorf("a taken port is not noticed before anything is opened: %v", err)
	}
	stop()
	other, err := New(cfg, noLog, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(cfg.BindAddress, strconv.Itoa(cfg.ListenPort)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := other.Start(); err == nil {
		t.Error("two servers on one port")
	}
	if err := other.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
