//go:build conformance

package admin

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// ask sends a frame over a connection of its own.
func ask(t *testing.T, addr string, f *wire.Frame) *wire.Frame {
	t.Helper()
	a, err := wire.CallOnce(addr, f, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// inFile tells whether a properties file says key=value.
func inFile(t *testing.T, file, key, value string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return strings.TrimSpace(line) == key+"="+value
	})
}

// blackListed are the keys that 4.9.8 refuses to change; its source is the yardstick here, since 4.9.7, which runs as the
// official server, takes most of them.
func blackListed(k kit, keys ...string) []string {
	if k.target.Kind == target.Official {
		return nil
	}
	return keys
}

// brokerConfig changes broker B, whose file holds a key that nobody knows, and leaves it as it was but for
// fileReservedTime and vendorKey.
func brokerConfig(t *testing.T, k kit) {
	item := func(key string) string {
		t.Helper()
		return pairs(k.run(t, "getBrokerConfig", "-b", k.b.Addr))[key]
	}
	update := func(key, value string) {
		t.Helper()
		k.prints(t, "update broker config success, "+k.b.Addr, "updateBrokerConfig", "-b", k.b.Addr, "-k", key, "-v", value)
	}
	out := k.run(t, "getBrokerConfig", "-c", "ClusterTwo")
	if !strings.HasPrefix(out, "============Master: "+k.b.Addr+"============\n") {
		t.Errorf("getBrokerConfig -c prints\n%s", out)
	}
	k.prints(t, "update broker config success, "+k.b.Addr, "updateBrokerConfig", "-c", "ClusterTwo", "-k", "fileReservedTime", "-v", "71")
	update("vendorKey", "after")
	for key, value := range map[string]string{"fileReservedTime": "71", "vendorKey": "after"} {
		if got := item(key); got != value || !inFile(t, k.b.ConfFile, key, value) {
			t.Errorf("%s is %q, in its file: %t; want %q", key, got, inFile(t, k.b.ConfFile, key, value), value)
		}
	}
	// A key that nobody has ever heard of is no error and goes nowhere.
	update("nobodyKnowsThis", "1")
	if got := item("nobodyKnowsThis"); got != "" || inFile(t, k.b.ConfFile, "nobodyKnowsThis", "1") {
		t.Errorf("an unknown key is shown as %q", got)
	}
	for _, key := range blackListed(k, "brokerConfigPath", "rocketmqHome", "configBlackList") {
		k.fails(t, "CODE: 16  DESC: Can not update config in black list.", "updateBrokerConfig", "-b", k.b.Addr, "-k", key, "-v", "x")
	}
	// A value of the wrong type changes nothing; rocketd says so.
	bad := ask(t, k.b.Addr, wire.Request(25).WithBody([]byte("fileReservedTime=long\n")))
	if want := map[target.Kind]int{target.Official: 0, target.Rocketd: 1}[k.target.Kind]; bad.Code != want || item("fileReservedTime") != "71" {
		t.Errorf("a bad value: code %d, %q; fileReservedTime is %s", bad.Code, bad.Remark, item("fileReservedTime"))
	}
	if k.target.Kind == target.Rocketd && !strings.Contains(bad.Remark, "fileReservedTime=long") {
		t.Errorf("a bad value: %q does not name it", bad.Remark)
	}
	if a := ask(t, k.b.Addr, wire.Request(25)); a.Code != 0 {
		t.Errorf("no body: code %d, %q", a.Code, a.Remark)
	}
	if a := ask(t, k.b.Addr, wire.Request(25).WithBody([]byte(`a=\u12`))); a.Code != 1 || a.Remark != "string2Properties error" {
		t.Errorf("malformed: code %d, %q", a.Code, a.Remark)
	}
	a := ask(t, k.b.Addr, wire.Request(26))
	if a.Code != 0 || !strings.HasPrefix(a.Ext["version"], `{"counter":`) || !strings.Contains(string(a.Body), "\nfileReservedTime=71\n") {
		t.Errorf("26: code %d, version %q", a.Code, a.Ext["version"])
	}

	// What the official broker reads each time counts at once.
	send := func(topic string, properties ...string) *wire.Frame {
		return ask(t, k.b.Addr, wire.Request(310, "a", "PG", "b", topic, "c", "TBW102", "d", "4", "e", "0", "f", "0", "g", "1700000000000",
			"h", "0", "i", strings.Join(properties, ""), "j", "0", "k", "false", "l", "0", "m", "false").WithBody([]byte("x")))
	}
	expect := func(topic string, code int) {
		t.Helper()
		if a := send(topic); a.Code != code {
			t.Errorf("a send to %s: code %d, %q; want %d", topic, a.Code, a.Remark, code)
		}
	}
	expect("AdminOrder", 0)
	update("maxMessageSize", "0"+"1") // digits as Java reads them
	if got := item("maxMessageSize"); got != "1" {
		t.Errorf("maxMessageSize is %s", got)
	}
	expect("AdminOrder", 0) // a body of one byte
	update("maxMessageSize", "4194304")
	update("brokerPermission", "4")
	k.eventually(t, func(out string) bool { return strings.Contains(out, "\"perm\":4,") }, "topicRoute", "-t", "AdminOrder")
	update("brokerPermission", "6")
	k.eventually(t, func(out string) bool { return strings.Contains(out, "\"perm\":6,") }, "topicRoute", "-t", "AdminOrder")
	expect("AdminOrder", 0)
	if a := send("AdminOrder"); a.Ext["TRACE_ON"] != "true" || a.Ext["MSG_REGION"] != "DefaultRegion" {
		t.Errorf("a send's answer has %v", a.Ext)
	}
	update("traceOn", "false")
	update("regionId", "elsewhere")
	if a := send("AdminOrder"); a.Ext["TRACE_ON"] != "false" || a.Ext["MSG_REGION"] != "elsewhere" {
		t.Errorf("a send's answer has %v", a.Ext)
	}
	update("traceOn", "true")
	update("regionId", "DefaultRegion")
	update("startAcceptSendRequestTimeStamp", "99999999999999")
	expect("AdminOrder", 1)
	update("startAcceptSendRequestTimeStamp", "0")
	expect("AdminOrder", 0)

	// Messages are indexed, or not, as it is when they are dispatched.
	keyed := func(key string) *wire.Frame { return send("AdminOrder", "KEYS\x01"+key+"\x02") }
	found := func(key string) int {
		t.Helper()
		return ask(t, k.b.Addr, wire.Request(12, "topic", "AdminOrder", "key", key, "maxNum", "4", "beginTimestamp", "0",
			"endTimestamp", strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10))).Code
	}
	dispatched := func(sent *wire.Frame) {
		t.Helper()
		offset, err := strconv.Atoi(sent.Ext["queueOffset"])
		for end := time.Now().Add(20 * time.Second); err == nil; {
			max := ask(t, k.b.Addr, wire.Request(30, "topic", "AdminOrder", "queueId", "0")).Ext["offset"]
			if n, _ := strconv.Atoi(max); n > offset {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("offset %d is not dispatched: %s", offset, max)
			}
		}
		t.Fatalf("sent: code %d, %q", sent.Code, sent.Remark)
	}
	update("messageIndexEnable", "false")
	dispatched(keyed("unindexed"))
	update("messageIndexEnable", "true")
	dispatched(keyed("indexed"))
	for end := time.Now().Add(20 * time.Second); found("indexed") != 0; {
		if time.Now().After(end) {
			t.Fatalf("a message sent with messageIndexEnable=true is not found: code %d", found("indexed"))
		}
	}
	if code := found("unindexed"); code != 22 {
		t.Errorf("a message sent with messageIndexEnable=false: code %d, want 22", code)
	}
}

// namesrvConfig leaves orderMessageEnable as it was.
func namesrvConfig(t *testing.T, k kit) {
	n := k.target.Namesrv
	update := func(key, value string) {
		t.Helper()
		out := k.run(t, "updateNamesrvConfig", "-k", key, "-v", value)
		if !strings.HasPrefix(out, "update name server config success!["+n+"]\n"+key+" : "+value+"\n") {
			t.Errorf("updateNamesrvConfig prints\n%s", out)
		}
	}
	file := filepath.Join(filepath.Dir(k.target.NameServers[0].Log()), "namesrv.conf")
	for _, value := range []string{"true", "false"} {
		update("orderMessageEnable", value)
		if got := pairs(k.run(t, "getNamesrvConfig"))["orderMessageEnable"]; got != value || !inFile(t, file, "orderMessageEnable", value) {
			t.Errorf("orderMessageEnable is %q, in its file: %t; want %s", got, inFile(t, file, "orderMessageEnable", value), value)
		}
	}
	update("nobodyKnowsThis", "1")
	if got := pairs(k.run(t, "getNamesrvConfig"))["nobodyKnowsThis"]; got != "" {
		t.Errorf("an unknown key is shown as %q", got)
	}
	for _, key := range blackListed(k, "configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome") {
		k.fails(t, "CODE: 16  DESC: Can not update config in black list.", "updateNamesrvConfig", "-k", key, "-v", "x")
	}
	bad := ask(t, n, wire.Request(318).WithBody([]byte("serverWorkerThreads=many\n")))
	want := map[target.Kind]int{target.Official: 0, target.Rocketd: 1}[k.target.Kind]
	if got := pairs(k.run(t, "getNamesrvConfig"))["serverWorkerThreads"]; bad.Code != want || got != "8" {
		t.Errorf("a bad value: code %d, %q; serverWorkerThreads is %s", bad.Code, bad.Remark, got)
	}
	if a := ask(t, n, wire.Request(318).WithBody([]byte(`a=\u12`))); a.Code != 1 || a.Remark != "string2Properties error" {
		t.Errorf("malformed: code %d, %q", a.Code, a.Remark)
	}
}

// statsAll: what goes through a topic shows ten seconds later at the latest.
func statsAll(t *testing.T, k kit) {
	const sent = 5
	for range sent {
		k.run(t, "@send", "AdminTopic", "broker-a", "3", "TagA", "stats", "stats")
	}
	pull := ask(t, k.a.Addr, wire.Request(11, "consumerGroup", "AdminGroup", "topic", "AdminTopic", "queueId", "3", "queueOffset", "0",
		"maxMsgNums", "32", "sysFlag", "4", "commitOffset", "0", "suspendTimeoutMillis", "0", "subscription", "*", "subVersion", "0"))
	got, err := wire.Messages(pull.Body)
	if err != nil || len(got) < sent {
		t.Fatalf("pull: code %d, %d messages, %v", pull.Code, len(got), err)
	}
	k.eventually(t, func(out string) bool {
		for _, row := range table(out) {
			if len(row) != 7 || row[0] != "AdminTopic" || row[1] != "AdminGroup" {
				continue
			}
			in, _ := strconv.Atoi(row[5])
			taken, _ := strconv.Atoi(row[6])
			inTps, _ := strconv.ParseFloat(row[3], 64)
			return in >= sent && taken >= len(got) && inTps > 0
		}
		return false
	}, "statsAll", "-t", "AdminTopic")
	one := func(name, key string) map[string]any {
		t.Helper()
		a := ask(t, k.a.Addr, wire.Request(315, "statsName", name, "statsKey", key))
		if a.Code != 0 {
			t.Errorf("%s %s: code %d, %q", name, key, a.Code, a.Remark)
			return nil
		}
		all, err := wire.ParseJSON(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		minute, _ := all.(map[string]any)["statsMinute"].(map[string]any)
		return minute
	}
	for _, s := range []struct{ name, key string }{
		{"TOPIC_PUT_SIZE", "AdminTopic"}, {"GROUP_GET_NUMS", "AdminTopic@AdminGroup"}, {"GROUP_GET_SIZE", "AdminTopic@AdminGroup"},
		{"BROKER_PUT_NUMS", "ClusterOne"}, {"BROKER_GET_NUMS", "ClusterOne"}, {"GROUP_GET_LATENCY", "3@AdminTopic@AdminGroup"},
	} {
		if m := one(s.name, s.key); m == nil || m["sum"] == nil || m["tps"] == nil || m["avgpt"] == nil {
			t.Errorf("%s %s: %v", s.name, s.key, m)
		}
	}
	for _, s := range []struct{ name, key string }{
		{"TOPIC_PUT_NUMS", "AdminNone"}, {"QUEUE_PUT_NUMS", "AdminTopic@3"}, {"GROUP_GET_FALL_SIZE", "3@AdminTopic@AdminGroup"},
		{"COMMERCIAL_SEND_TIMES", "AdminTopic"}, {"GROUP_GET_FROM_DISK_NUMS", "AdminTopic@AdminGroup"}, {"NO_SUCH", "AdminTopic"},
	} {
		a := ask(t, k.a.Addr, wire.Request(315, "statsName", s.name, "statsKey", s.key))
		if want := "The stats <" + s.name + "> <" + s.key + "> not exist"; a.Code != 1 || a.Remark != want {
			t.Errorf("%s %s: code %d, %q", s.name, s.key, a.Code, a.Remark)
		}
	}
}
