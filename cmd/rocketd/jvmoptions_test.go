package main

import (
	"bytes"
	"log/slog"
	"os/user"
	"slices"
	"strings"
	"testing"
	"time"
)

// What the options of a JVM say counts as with the official servers: before the defaults and the environment, behind the
// configuration file; -D goes before the file.
func TestJVMOptions(t *testing.T) {
	old := lookupUser
	lookupUser = func(uid string) (*user.User, error) { return &user.User{Uid: uid, HomeDir: "/home/someone"}, nil }
	defer func() { lookupUser = old }()
	t.Setenv("ROCKETMQ_HOME", "/opt/rocketmq")
	t.Setenv("NAMESRV_ADDR", "env:9876")
	t.Setenv("JAVA_OPT", `-server -Xms4g -Xmx4g -XX:+UseG1GC "-Duser.home=/data" -Drocketmq.home.dir=/opt/mq -Drocketmq.namesrv.addr=opt:9876`)
	t.Setenv("JAVA_OPT_EXT", "-Drocketmq.broker.diskSpaceWarningLevelRatio=0.95 -Drocketmq.broker.diskSpaceCleanForciblyRatio=0.29 "+
		"-Dcom.rocketmq.remoting.frameMaxLength=33554432 -Dcom.rocketmq.remoting.socket.backlog=64 -Drocketmq.acl.plain.file=conf/acl.yml")
	file := conf(t, "namesrvAddr=file:9876\nframeMaxLength=20000000\nbrokerIP1=127.0.0.1\n")
	for _, tt := range []struct{ args, want []string }{
		{[]string{"broker"}, []string{"storePathRootDir=/data/store", "rocketmqHome=/opt/mq", "namesrvAddr=opt:9876", "diskSpaceWarningLevelRatio=95",
			"diskSpaceCleanForciblyRatio=29", "frameMaxLength=33554432", "serverSocketBacklog=64", "aclPlainFile=conf/acl.yml"}},
		{[]string{"broker", "-c", file}, []string{"namesrvAddr=file:9876", "frameMaxLength=20000000", "serverSocketBacklog=64"}},
		{[]string{"broker", "-c", file, "-Dcom.rocketmq.remoting.frameMaxLength=1000000", "-Duser.home=/srv"},
			[]string{"frameMaxLength=1000000", "storePathRootDir=/srv/store"}},
		{[]string{"namesrv"}, []string{"kvConfigPath=/data/namesrv/kvConfig.json", "rocketmqHome=/opt/mq", "frameMaxLength=33554432"}},
		{[]string{"broker", "--profile", "secure", "-Drocketmq.home.dir=", "-c", file}, []string{"rocketmqHome=/data/rocketd"}},
		{[]string{"namesrv", "-Duser.home=/srv"}, []string{"kvConfigPath=/srv/namesrv/kvConfig.json"}},
	} {
		code, out, errs := invoke(slices.Concat([]string{"rocketd"}, tt.args, []string{"-p"})...)
		if code != exitOK {
			t.Errorf("%v: code %d, %s", tt.args, code, errs)
		}
		for _, want := range tt.want {
			if !slices.Contains(strings.Split(out, "\n"), want) {
				t.Errorf("%v: no %q in\n%s", tt.args, want, out)
			}
		}
	}
	t.Setenv("JAVA_OPT_EXT", "-Dcom.rocketmq.remoting.frameMaxLength=32m")
	if code, _, errs := invoke("rocketd", "broker", "-p"); code != exitError || !strings.Contains(errs, "frameMaxLength=32m") {
		t.Errorf("no number: code %d, %s", code, errs)
	}
}

// Properties that RocketMQ reads and this server does not are told of; those of the JVM are nobody's business.
func TestIdleOptions(t *testing.T) {
	t.Setenv("JAVA_TOOL_OPTIONS", "-Dfile.encoding=UTF-8 -Drocketmq.client.logLevel=WARN -Djava.ext.dirs=/x")
	t.Setenv("JAVA_OPT", "-Dtls.server.mod=enforcing -Xmx1g")
	t.Setenv("JAVA_OPT_EXT", "")
	if got := environmentOptions().idle; !slices.Equal(got, []string{"rocketmq.client.logLevel", "tls.server.mod"}) {
		t.Errorf("%q", got)
	}
	var log bytes.Buffer
	if err := environmentOptions().heed(slog.New(slog.NewTextHandler(&log, nil))); err != nil || !strings.Contains(log.String(), "tls.server.mod") {
		t.Errorf("%v, log %s", err, log.String())
	}
	code, _, errs := invoke("rocketd", "broker", "-Drocketmq.namesrv.adr=x:1")
	if code != exitUsage || !strings.Contains(errs, "perhaps rocketmq.namesrv.addr") {
		t.Errorf("code %d, %s", code, errs)
	}
}

// Zones by name, and by offset as Java writes it.
func TestZone(t *testing.T) {
	at := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	for zone, want := range map[string]string{
		"GMT+8": "20:00", "GMT+08:00": "20:00", "GMT-0330": "08:30", "UTC": "12:00", "Nowhere/Town": "", "GMT+99": "", "": "",
	} {
		l, err := jvmOptions{zone: zone}.location()
		switch {
		case want == "" && zone != "":
			if err == nil {
				t.Errorf("%s is a zone", zone)
			}
		case err != nil:
			t.Errorf("%s: %v", zone, err)
		case want != "" && at.In(l).Format("15:04") != want:
			t.Errorf("%s: %s, want %s", zone, at.In(l).Format("15:04"), want)
		case want == "" && l != nil:
			t.Errorf("no zone: %s", l)
		}
	}
}
