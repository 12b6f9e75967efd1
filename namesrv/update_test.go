package namesrv

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/remoting/remotingtest"
)

// The log of an update names what counts later, which unknown keys never do, and booleans that are none.
func TestUpdateLog(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "ns.conf")
	if err := os.WriteFile(conf, []byte("someKey=1\nkvConfigPath="+dir+"/kvConfig.json\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg, err := ReadConfig(conf, testConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := New(cfg, slog.New(slog.NewTextHandler(&log, nil)), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	p, err := compat.ParseProperties([]byte("someKey=2\nmaxConnections=99\norderMessageEnable=yes\nserverWorkerThreads=9\nnobody=1\nmaxConections=9\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.change(p, "test", writeConfig); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"needARestart=[maxConnections]", "ignored=\"[nobody maxConections]\"", "keys=[nobody]", "key=maxConections perhaps=maxConnections", "level=WARN", "key=orderMessageEnable value=yes"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "unless it is given with -c") {
		t.Errorf("its file was given: %s", log.String())
	}
	if s, err = New(testConfig(dir), slog.New(slog.NewTextHandler(&log, nil)), time.Now); err != nil {
		t.Fatal(err)
	}
	if err := s.change(p, "test", writeConfig); err != nil || !strings.Contains(log.String(), "unless it is given with -c") {
		t.Errorf("without a file: %v, %s", err, log.String())
	}
}

// TestUpdates: a bad value is refused by name and changes nothing; a good one leaves the file's comments and order.
func TestUpdates(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "ns.conf")
	text := "# mine\nlistenPort = 0\nbindAddress=127.0.0.1\nsomeKey=\\\n  kept\n! end\nkvConfigPath=" + dir + "/kvConfig.json\n"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	link := filepath.Join(dir, "link.conf")
	if err := os.Symlink(conf, link); err != nil {
		t.Fatal(err)
	}
	cfg, err := ReadConfig(link, DefaultConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := start(t, cfg)
	p := remotingtest.Dial(t, s.Addr())
	update := func(body string) (code int32, remark string) {
		a := p.Ask(protocol.NewRequest(protocol.UpdateNamesrvConfig, nil, []byte(body)))
		return a.Code, a.Remark
	}
	for _, bad := range []struct{ body, remark string }{
		{"orderMessageEnable=true\nserverWorkerThreads=x\n", "configuration is left as it was: serverWorkerThreads=x is not a whole number"},
		{"orderMessageEnable=true\nserverWorkerThreads=-1\n", "serverWorkerThreads=-1: must be 0 or more"},
		{"orderMessageEnable=true\nlistenPort=65536\n", "listenPort=65536: must be a port"},
		{"orderMessageEnable=true\nclusterTest=true\n", "clusterTest=true"},
	} {
		if code, remark := update(bad.body); code != int32(protocol.SystemError) || !strings.Contains(remark, bad.remark) {
			t.Errorf("%q: code %d, %q, want %q", bad.body, code, remark, bad.remark)
		}
	}
	if got, _ := os.ReadFile(conf); string(got) != text || s.config.Load().OrderMessageEnable {
		t.Errorf("a refused update: %t, the file is now\n%s", s.config.Load().OrderMessageEnable, got)
	}
	if code, remark := update("orderMessageEnable=true\nsomeKey=changed\nlistenPort=9999\nnobody=1\n"); code != 0 {
		t.Fatalf("code %d, %q", code, remark)
	}
	want := "# mine\nlistenPort = 9999\nbindAddress=127.0.0.1\nsomeKey=changed\n! end\nkvConfigPath=" + dir + "/kvConfig.json\norderMessageEnable=true\n"
	if got, _ := os.ReadFile(conf); string(got) != want {
		t.Errorf("the file is now\n%s\nwant\n%s", got, want)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}

	reload := func(text, fault string) {
		t.Helper()
		write(text)
		read, err := ReadConfig(link, DefaultConfig(dir))
		if err == nil {
			err = s.Reload(read)
		}
		if (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: %v, want %q", text, err, fault)
		}
	}
	rest := "bindAddress=127.0.0.1\nkvConfigPath=" + dir + "/kvConfig.json\n"
	reload(rest+"listenPort=0\nmore=1\n", "")
	get := func() string {
		return string(p.Ask(protocol.NewRequest(protocol.GetNamesrvConfig, nil, nil)).Body)
	}
	if got := get(); s.config.Load().OrderMessageEnable || !strings.Contains(got, "\nmore=1\n") || strings.Contains(got, "someKey") {
		t.Errorf("after the file was read again:\n%s", got)
	}
	reload(rest+"orderMessageEnable=true\nserverWorkerThreads=-1\n", "serverWorkerThreads=-1")
	reload(rest+"orderMessageEnable=true\nserverWorkerThreads=x\n", "line 4: serverWorkerThreads=x")
	reload(rest+"orderMessageEnable=true\nclusterTest=true\n", "clusterTest=true")
	if s.config.Load().OrderMessageEnable {
		t.Error("a bad file changed something")
	}
}
