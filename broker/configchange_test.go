package broker

import (
	"strings"
	"sync"
	"testing"
	"time"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/store/vfs"
)

// confBroker is a broker with a configuration file in memory.
type confBroker struct {
	*pathBroker
	files vfs.Files
	base  Config // before the file
}

const confFile = "/conf/broker.conf"

func startConfBroker(t *testing.T, text string) *confBroker {
	t.Helper()
	fs := vfs.NewMem(time.Now)
	c := &confBroker{files: vfs.Files{FS: fs}}
	if err := c.files.MkdirAll("/conf"); err != nil {
		t.Fatal(err)
	}
	c.write(t, text)
	c.pathBroker = startPathBrokerOn(t, fs, func(cfg *Config) {
		c.base = *cfg
		*cfg = c.read(t)
	})
	return c
}

func (c *confBroker) write(t *testing.T, text string) {
	t.Helper()
	if err := c.files.WriteFile(confFile, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// read is the configuration as the start reads it.
func (c *confBroker) read(t *testing.T) Config {
	t.Helper()
	text, err := c.files.ReadFile(confFile)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.base.merge(text, confFile)
	if err != nil {
		t.Fatal(err)
	}
	cfg.file = confFile
	return cfg
}

func (c *confBroker) item(key string) string {
	c.tb.Helper()
	a := c.ask(protocol.GetBrokerConfig, nil, nil)
	for line := range strings.Lines(string(a.Body)) {
		if k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "="); k == key {
			return v
		}
	}
	return ""
}

// TestUpdateRefusals: what is refused names key and fault, and changes nothing, also not the keys beside it.
func TestUpdateRefusals(t *testing.T) {
	const text = "# mine\nvendorKey=7\n"
	c := startConfBroker(t, text)
	for _, tt := range []struct{ value, remark string }{
		{"brokerPermission=six", "the configuration is left as it was: brokerPermission=six is not a whole number"},
		{"brokerPermission=8", "brokerPermission=8: must be from 0 to 7"},
		{"brokerPermission=99999999999", "brokerPermission=99999999999 is not a number from -2147483648 to 2147483647"},
		{"fileReservedTime=-1", "fileReservedTime=-1: must be 0 or more"},
		{"maxMessageSize=0", "maxMessageSize=0: must be from 1 to 2147418111"},
		{"flushIntervalCommitLog=0", "flushIntervalCommitLog=0: must be from 1 to 2147483647"},
		{"flushIntervalCommitLog=2147483648", "flushIntervalCommitLog=2147483648: must be from 1 to 2147483647"},
		{"transactionTimeOut=0", "transactionTimeOut=0: must be 1 or more"},
		{"transactionCheckMax=0", "transactionCheckMax=0: must be from 1 to 2147483647"},
		{"deleteWhen=25", "deleteWhen=25: must be hours from 00 to 23"},
		{"deleteWhen=", "deleteWhen=: must be hours"},
		{"flushDiskType=SOMETIMES", "flushDiskType=SOMETIMES"},
		{"namesrvAddr=nowhere", "Name Server Address[nowhere] illegal"},
		{"listenPort=70000", "listenPort=70000"},
		{"messageDelayLevel=1x", "messageDelayLevel"},
		{"defaultTopicQueueNums=0", "defaultTopicQueueNums=0"},
	} {
		a := c.ask(protocol.UpdateBrokerConfig, nil, []byte("traceOn=false\n"+tt.value+"\n"))
		if a.Code != int32(protocol.SystemError) || !strings.Contains(a.Remark, tt.remark) {
			t.Errorf("%s: code %d, %q, want %q", tt.value, a.Code, a.Remark, tt.remark)
		}
	}
	if got := c.item("traceOn"); got != "true" {
		t.Errorf("a key beside a refused one is changed: traceOn=%s", got)
	}
	if got, _ := c.files.ReadFile(confFile); string(got) != text {
		t.Errorf("the file has changed:\n%s", got)
	}
}

// TestUpdateKeepsTheFile: comments, order and the form of lines stay; unknown keys of the file can be changed, others
// are not added; what needs a restart is written and shown, and not in force.
func TestUpdateKeepsTheFile(t *testing.T) {
	c := startConfBroker(t, "# mine\r\nvendorKey = 7\r\nnamesrvAddr=127.0.0.1:1;\\\r\n   127.0.0.1:2\r\n! end\ntraceOn=true\ntraceOn=true")
	update := "vendorKey=8\nnoSuchKey=1\nnamesrvAddr=127.0.0.1:3\ntraceOn=false\nmaxIndexNum=10\ndeleteWhen=03;15\n"
	check(t, "update", c.ask(protocol.UpdateBrokerConfig, nil, []byte(update)), protocol.Success, "")
	const want = "# mine\r\nvendorKey = 8\r\nnamesrvAddr=127.0.0.1:3\r\n! end\ntraceOn=false\nmaxIndexNum=10\ndeleteWhen=03;15\n"
	if got, _ := c.files.ReadFile(confFile); string(got) != want {
		t.Errorf("the file is now\n%q, want\n%q", got, want)
	}
	if got, _ := c.files.ReadFile(confFile + ".bak"); !strings.Contains(string(got), "vendorKey = 7") {
		t.Errorf("the backup is\n%s", got)
	}
	for key, want := range map[string]string{"vendorKey": "8", "noSuchKey": "", "traceOn": "false", "maxIndexNum": "10", "deleteWhen": "03;15"} {
		if got := c.item(key); got != want {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	if cfg := c.config(); cfg.MaxIndexNum == 10 || cfg.TraceOn || c.store.Config().DeleteWhen != "03;15" {
		t.Errorf("in force: maxIndexNum %d, traceOn %t, deleteWhen %s", cfg.MaxIndexNum, cfg.TraceOn, c.store.Config().DeleteWhen)
	}
}

// TestConcurrentUpdates: none is lost, in the file or in force.
func TestConcurrentUpdates(t *testing.T) {
	c := startConfBroker(t, "# mine\n")
	keys := []string{"shortPollingTimeMills", "maxMessageSize", "fileReservedTime", "transactionCheckMax", "maxMsgsNumBatch", "defaultQueryMaxNum"}
	var wg sync.WaitGroup
	for _, key := range keys {
		peer := c.dial()
		r := c.request(protocol.UpdateBrokerConfig, nil, []byte(key+"=77\n"))
		wg.Go(func() {
			if a := peer.Ask(r); a.Code != 0 {
				t.Errorf("%s: %d %s", key, a.Code, a.Remark)
			}
		})
	}
	wg.Wait()
	text, _ := c.files.ReadFile(confFile)
	props, err := compat.ParseProperties(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if v, _ := props.Get(key); v != "77" || c.item(key) != "77" {
			t.Errorf("%s=%s in the file, %s in force", key, v, c.item(key))
		}
	}
}

// TestReload: the file read again counts like an update, a key that is gone has its default again, and a bad file
// changes nothing.
func TestReload(t *testing.T) {
	c := startConfBroker(t, "traceOn=false\nmaxMessageSize=1000\nvendorKey=7\nregionId=A\n")
	reload := func(text, want string) {
		t.Helper()
		c.write(t, text)
		err := c.Reload(c.read(t))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	reload("maxMessageSize=2000\nregionId=A\nmaxIndexNum=10\notherKey=1\n", "")
	cfg := c.config()
	if !cfg.TraceOn || cfg.MaxMessageSize != 2000 || cfg.RegionId != "A" || cfg.MaxIndexNum == 10 || c.store.Config().MaxMessageSize != 2000 {
		t.Errorf("in force: %t %d %s %d", cfg.TraceOn, cfg.MaxMessageSize, cfg.RegionId, cfg.MaxIndexNum)
	}
	for key, want := range map[string]string{"vendorKey": "", "otherKey": "1", "maxIndexNum": "10"} {
		if got := c.item(key); got != want {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	reload("maxMessageSize=3000\nregionId=B\naclEnable=true\n", "aclEnable=true")
	reload("maxMessageSize=3000\nregionId=B\ndeleteWhen=noon\n", "deleteWhen=noon")
	if cfg := c.config(); cfg.MaxMessageSize != 2000 || cfg.RegionId != "A" {
		t.Errorf("after bad files: %d %s", cfg.MaxMessageSize, cfg.RegionId)
	}
	if text, _ := c.files.ReadFile(confFile); !strings.HasSuffix(string(text), "deleteWhen=noon\n") {
		t.Errorf("the file was written: %s", text)
	}
	_, err := c.base.merge([]byte("\n\nmaxMessageSize=x\n"), confFile)
	if err == nil || !strings.Contains(err.Error(), confFile+": line 3: maxMessageSize=x") {
		t.Errorf("a bad value: %v", err)
	}
}
