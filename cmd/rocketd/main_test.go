package main

import (
	"bytes"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// invoke runs a command line that does not serve.
func invoke(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"rocketd"}, []string{"standalone", "namesrv", "broker", "NAMESRV_ADDR"}},
		{[]string{"rocketd", "--help"}, []string{"standalone", "ROCKETMQ_HOME", "BROKER_IP1"}},
		{[]string{"rocketd", "-h"}, []string{"standalone"}},
		{[]string{"rocketd", "store", "dump", "--help"}, []string{"--what WHAT", "before log OFFSET (default: the end)", "this ID (default: all)"}},
		{[]string{"rocketd", "admin", "acl", "check", "--help"}, []string{"--op OP"}},
		{[]string{"rocketd", "broker", "--help"}, []string{"--configFile", "-c", "--namesrvAddr", "-n", "--printConfigItem", "-p", "--printImportantConfig", "-m", "--help", "-h"}},
		{[]string{"rocketd", "namesrv", "-h"}, []string{"--configFile", "-c", "--printConfigItem", "-p", "9876"}},
		{[]string{"rocketd", "standalone", "-h"}, []string{"--data", "./data", "10911"}},
		{[]string{"/usr/bin/mqbroker", "-h"}, []string{"--printImportantConfig"}},
		{[]string{"mqnamesrv", "-h"}, []string{"--configFile"}},
		{[]string{"rocketd", "help"}, []string{"standalone", "NAMESRV_ADDR"}},
		{[]string{"rocketd", "help", "broker"}, []string{"--configFile", "storePathRootDir"}},
	} {
		code, out, errs := invoke(tt.args...)
		if code != exitOK || errs != "" {
			t.Errorf("%v: code %d, %s", tt.args, code, errs)
		}
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", tt.args, want, out)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"rocketd", "--version"}, {"rocketd", "-v"}, {"rocketd", "version"}, {"mqbroker", "--version"}, {"/x/mqnamesrv", "-v"}, {"rocketd", "broker", "-v"}} {
		if code, out, _ := invoke(args...); code != exitOK || !strings.HasPrefix(out, "rocketd ") || !strings.Contains(out, "4.9.8") {
			t.Errorf("%v: %d, %q", args, code, out)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{"rocketd", "brker"}, {"rocketd", "--nothing"}, {"rocketd", "broker", "--nothing"}, {"rocketd", "broker", "start"},
		{"rocketd", "standalone", "--listenPort", "x"}, {"mqbroker", "-z"}, {"rocketd", "broker", "-c"},
	} {
		code, _, errs := invoke(args...)
		if code != exitUsage || !strings.Contains(errs, "--help`") {
			t.Errorf("%v: code %d, %s", args, code, errs)
		}
	}
}

// What was likely meant is said with what is wrong.
func TestPerhaps(t *testing.T) {
	for line, want := range map[string]string{
		"brker": "(perhaps broker)", "store verfy x": "(perhaps verify)", "admin acll": "(perhaps acl)", "admin acl chec": "(perhaps check)",
		"broker --configFle x": "(perhaps configFile)", "store dump --topc T x": "(perhaps topic)", "--versoin": "(perhaps version)",
		"admin acl check --topik x": "(perhaps topic)", "broker -Xmx4g": "option of the JVM", "namesrv --nothing": "not defined: -nothing (see",
	} {
		if code, _, errs := invoke(append([]string{"rocketd"}, strings.Fields(line)...)...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, %s", line, code, errs)
		}
	}
}

func conf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "broker.conf")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// What a flag says goes before the file, that before the environment, that before the defaults.
func TestPrintConfig(t *testing.T) {
	old := lookupUser
	lookupUser = func(uid string) (*user.User, error) { return &user.User{Uid: uid, HomeDir: "/home/someone"}, nil }
	defer func() { lookupUser = old }()
	t.Setenv("HOME", "/elsewhere")
	t.Setenv("NAMESRV_ADDR", "env:9876")
	t.Setenv("ROCKETMQ_HOME", "/opt/rocketmq")
	plain := conf(t, "brokerName=broker-x\nvendorKey=1\nlistenPort=20911\nbrokerIP1=10.1.2.3\n")
	named := conf(t, "namesrvAddr=file:9876\n")
	for _, tt := range []struct {
		args []string
		want []string
		not  []string
	}{
		{[]string{"rocketd", "broker", "-p"}, []string{"namesrvAddr=env:9876", "rocketmqHome=/opt/rocketmq",
			"storePathRootDir=/home/someone/store", "listenPort=10911", "haListenPort=10912", "storePathCommitLog="}, nil},
		{[]string{"rocketd", "broker", "-c", plain, "-p"}, []string{"brokerName=broker-x", "vendorKey=1", "listenPort=20911",
			"haListenPort=20912", "brokerIP1=10.1.2.3", "brokerIP2=10.1.2.3", "namesrvAddr=env:9876"}, nil},
		{[]string{"rocketd", "broker", "-c", named, "-p"}, []string{"namesrvAddr=file:9876"}, nil},
		{[]string{"mqbroker", "-c", named, "-n", "flag:9876", "-p"}, []string{"namesrvAddr=flag:9876"}, nil},
		{[]string{"rocketd", "broker", "-c", plain, "-m"}, []string{"brokerName=broker-x", "flushDiskType=ASYNC_FLUSH"}, []string{"vendorKey=1", "listenPort=20911"}},
		{[]string{"rocketd", "namesrv", "-p"}, []string{"listenPort=9876", "kvConfigPath=/home/someone/namesrv/kvConfig.json", "rocketmqHome=/opt/rocketmq"}, nil},
	} {
		code, out, errs := invoke(tt.args...)
		lines := strings.Split(out, "\n")
		if code != exitOK {
			t.Errorf("%v: code %d, %s", tt.args, code, errs)
		}
		for _, want := range tt.want {
			if !slices.Contains(lines, want) {
				t.Errorf("%v: no %q in\n%s", tt.args, want, out)
			}
		}
		for _, not := range tt.not {
			if slices.Contains(lines, not) {
				t.Errorf("%v: %q is there", tt.args, not)
			}
		}
	}
}

// -p prints what a server would run with, and says what is wrong with it: a configuration can be tried without a start.
func TestPrintConfigTells(t *testing.T) {
	for _, tt := range []struct {
		command, text string
		code          int
		want          []string
	}{
		{"broker", "flushDisktype=SYNC_FLUSH", exitOK, []string{"perhaps=flushDiskType"}},
		{"broker", "brokerRole=SLAVE\nbrokerId=1", exitError, []string{"ASYNC_MASTER"}},
		{"broker", "storePathRootDir=~/store", exitError, []string{"not expanded"}},
		{"standalone", "flushDisktype=SYNC_FLUSH", exitOK, []string{"perhaps=flushDiskType"}},
		{"namesrv", "orderMessageEnabel=true", exitOK, []string{"perhaps=orderMessageEnable"}},
		{"namesrv", "clusterTest=true", exitError, []string{"clusterTest"}},
	} {
		code, out, errs := invoke("rocketd", tt.command, "-p", "-c", conf(t, "brokerIP1=127.0.0.1\nstorePathRootDir=/nowhere\nkvConfigPath=/nowhere/kv.json\n"+tt.text+"\n"))
		if code != tt.code || !strings.Contains(out, "listenPort=") {
			t.Errorf("%s, %q: code %d, %s", tt.command, tt.text, code, out)
		}
		for _, want := range tt.want {
			if !strings.Contains(errs, want) {
				t.Errorf("%s, %q: no %q in %s", tt.command, tt.text, want, errs)
			}
		}
	}
}

// What keeps a broker from starting is said in one line that names the key, with exit code 1.
func TestRefusals(t *testing.T) {
	_, port := ports(t)
	for text, want := range map[string]string{
		"aclEnable=true": "aclEnable", "brokerRole=SLAVE": "ASYNC_MASTER", "brokerPermission=six": "brokerPermission",
		"brokerIP1=no.such.host.invalid": "brokerIP1", "namesrvAddr=localhost": "127.0.0.1:9876;192.168.0.1:9876",
		"storePathRootDir=": "storePathRootDir is empty",
	} {
		path := conf(t, fmt.Sprintf("storePathRootDir=%s\nlistenPort=%d\n%s\n", filepath.Join(t.TempDir(), "store"), port, text))
		code, _, errs := invoke("rocketd", "broker", "-c", path)
		if code != exitError || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, %s", text, code, errs)
		}
	}
	if code, _, errs := invoke("rocketd", "broker", "-c", "/no/such/file"); code != exitError || !strings.Contains(errs, "/no/such/file") {
		t.Errorf("missing file: code %d, %s", code, errs)
	}
}

// Java's user.home is that of the password file; $HOME stands in for a user who has no entry.
func TestHome(t *testing.T) {
	old := lookupUser
	defer func() { lookupUser = old }()
	for _, tt := range []struct{ passwd, env, want string }{
		{"/home/a", "/root", "/home/a"}, {"/home/a", "", "/home/a"}, {"", "/root", "/root"}, {"none", "/root", "/root"}, {"none", "", ""},
	} {
		lookupUser = func(uid string) (*user.User, error) {
			if tt.passwd == "none" {
				return nil, user.UnknownUserError(uid)
			}
			return &user.User{Uid: uid, HomeDir: tt.passwd}, nil
		}
		t.Setenv("HOME", tt.env)
		got, err := homeDir("storePathRootDir")
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%+v: %q, %v", tt, got, err)
		}
	}
	for command, key := range map[string]string{"broker": "storePathRootDir", "namesrv": "kvConfigPath"} { // none at all
		if code, _, errs := invoke("rocketd", command, "-p"); code != exitError || !strings.Contains(errs, key) || !strings.Contains(errs, "password file") {
			t.Errorf("%s: code %d, %s", command, code, errs)
		}
		path := conf(t, key+"=/somewhere/x\nbrokerIP1=127.0.0.1\n")
		if code, out, errs := invoke("rocketd", command, "-c", path, "-p"); code != exitOK || !strings.Contains(out, key+"=/somewhere/x\n") {
			t.Errorf("%s: code %d, %s", command, code, errs)
		}
	}
}
