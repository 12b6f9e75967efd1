package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeConf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "broker.conf")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// The broker.conf that the official distribution ships, and keys of all four classes.
func TestReadConfig(t *testing.T) {
	path := writeConf(t, `# comment
brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = SYNC_FLUSH
listenPort=20911
connectTimeoutMillis=1234
mappedFileSizeCommitLog=1048576
autoCreateTopicEnable = FALSE
defaultTopicQueueNums=4
someVendorKey = some value
namesrvAddr=a:9876;\
  b:9876
`)
	cfg, err := ReadConfig(path, DefaultConfig("/store"))
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key       string
		got, want any
	}{
		{"brokerName", cfg.BrokerName, "broker-a"},
		{"fileReservedTime", cfg.FileReservedTime, 48},
		{"flushDiskType", cfg.FlushDiskType, "SYNC_FLUSH"},
		{"listenPort", cfg.ListenPort, 20911},
		{"connectTimeoutMillis", cfg.ConnectTimeoutMillis, 1234},
		{"mappedFileSizeCommitLog", cfg.MappedFileSizeCommitLog, 1 << 20},
		{"autoCreateTopicEnable", cfg.AutoCreateTopicEnable, false},
		{"defaultTopicQueueNums", cfg.DefaultTopicQueueNums, int32(4)},
		{"namesrvAddr", cfg.NamesrvAddr, "a:9876;b:9876"},
		{"storePathRootDir", cfg.StorePathRootDir, "/store"},
		{"maxMessageSize", cfg.MaxMessageSize, 4194304},
	} {
		if c.got != c.want {
			t.Errorf("%s = %v, want %v", c.key, c.got, c.want)
		}
	}
	items := map[string]string{}
	for _, kv := range cfg.Items() {
		items[kv.Key] = kv.Value
	}
	for key, want := range map[string]string{"someVendorKey": "some value", "brokerName": "broker-a", "autoCreateTopicEnable": "false",
		"brokerPermission": "6", "waitTimeMillsInSendQueue": "200", "haListenPort": "10912"} {
		if items[key] != want {
			t.Errorf("item %s = %q, want %q", key, items[key], want)
		}
	}
	cfg.complete()
	if cfg.HaListenPort != 20912 {
		t.Errorf("haListenPort %d, want listenPort+1", cfg.HaListenPort)
	}
}

// Every key that the official classes have is a key here, with the same default; testdata/config-defaults.tsv has them.
func TestOfficialDefaults(t *testing.T) {
	data, err := os.ReadFile("testdata/config-defaults.tsv")
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig("<home>/store")
	cfg.HaListenPort = 10912
	items := map[string]string{}
	for _, kv := range cfg.Items() {
		items[kv.Key] = kv.Value
	}
	for line := range strings.Lines(string(data)) {
		key, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		got, ok := items[key]
		if !ok {
			t.Errorf("no key %s", key)
			continue
		}
		if got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
}

func TestReadConfigErrors(t *testing.T) {
	if _, err := ReadConfig(filepath.Join(t.TempDir(), "none.conf"), DefaultConfig("s")); err == nil || !strings.Contains(err.Error(), "none.conf") {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := ReadConfig(writeConf(t, "# named\nbrokerName= \n"), DefaultConfig("s")); err == nil || !strings.Contains(err.Error(), "line 2: brokerName is empty") {
		t.Errorf("an empty name: %v", err)
	}
	_, err := ReadConfig(writeConf(t, "brokerPermission=six\n"), DefaultConfig("s"))
	if err == nil || !strings.Contains(err.Error(), "brokerPermission") || !strings.Contains(err.Error(), "six") {
		t.Errorf("a value that is no number: %v", err)
	}
}

// A configuration that asks for what is not served yet must not be run without it.
func TestFailClosed(t *testing.T) {
	for _, text := range []string{
		"aclEnable=true", "brokerRole=SLAVE", "brokerRole=SYNC_MASTER", "enableDLegerCommitLog=true",
		"tls.server.mode=strict", "tls.server.need.client.auth=yes", "fetchNamesrvAddrByAddressServer=true", "maxErrorRateOfBloomFilter=100", "expectConsumerNumUseFilter=0",
		"duplicationEnable=true", "messageStorePlugIn=a.b.C",
		"flushDiskType=SOMETIMES", "brokerRole=MASTER", "namesrvAddr=localhost", "namesrvAddr=:9876", "namesrvAddr=http://x:1",
		"namesrvAddr=a:b", "namesrvAddr=a:1/x:9876", "namesrvAddr=a:70000", "listenPort=65535", "listenPort=2",
	} {
		cfg, err := ReadConfig(writeConf(t, text), DefaultConfig("s"))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		err = cfg.Validate()
		if err == nil {
			t.Errorf("%s would start", text)
		} else if key, _, _ := strings.Cut(text, "="); key != "namesrvAddr" && !strings.Contains(err.Error(), key) {
			t.Errorf("%s: the message does not name the key: %v", text, err)
		}
	}
	for _, text := range []string{"tls.server.mode=permissive", "tls.server.mode=enforcing", "useTLS=true", "aclEnable=false", "namesrvAddr=a:1;;b:2;", "brokerRole=ASYNC_MASTER", ""} {
		cfg, err := ReadConfig(writeConf(t, text), DefaultConfig("s"))
		if err == nil {
			err = cfg.Validate()
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSplitNamesrvAddr(t *testing.T) {
	for text, want := range map[string]string{"": "", "a:1": "a:1", " a:1 ; b:2;": "a:1|b:2", "a:1;a:1": "a:1", "a:1,b:2": "a:1|b:2"} {
		if got := strings.Join(splitNamesrvAddr(text), "|"); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
