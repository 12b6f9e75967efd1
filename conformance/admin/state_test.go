//go:build conformance

package admin

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// consumerProgress leaves AdminGroup offline with 12 messages consumed and 2 behind, AdminOnline online without lag.
func consumerProgress(t *testing.T, k kit) {
	k.prints(t, "consumed 12", "@consume", "AdminTopic", "AdminGroup", "12")
	for _, q := range []string{"0", "3"} {
		k.run(t, "@send", "AdminTopic", "broker-a", q, "TagZ", "late", "late body")
	}
	online := strings.Fields(k.run(t, "@online", "AdminTopic", "AdminOnline"))
	if len(online) != 2 {
		t.Fatalf("online consumer: %v", online)
	}
	offsets := map[string]bool{}
	out := k.eventually(t, func(out string) bool { return strings.Contains(out, "Diff Total: 2") }, "consumerProgress", "-g", "AdminGroup")
	for _, row := range table(out) {
		if row[0] == "AdminTopic" && len(row) >= 6 {
			offsets[strings.Join(row[1:6], " ")] = true
		}
	}
	for i := range 4 {
		behind := 0
		if i == 0 || i == 3 {
			behind = 1
		}
		want := strings.Join([]string{"broker-a", strconv.Itoa(i), strconv.Itoa(3 + behind), "3", strconv.Itoa(behind)}, " ")
		if !offsets[want] {
			t.Errorf("consumerProgress -g AdminGroup lacks %q:\n%s", want, out)
		}
	}
	k.eventually(t, func(out string) bool {
		return strings.Contains(out, "Diff Total: 0") && strings.Count(out, "AdminTopic") == 4
	}, "consumerProgress", "-g", "AdminOnline")
	k.fails(t, "CODE: 17  DESC: No topic route info in name server for the topic: %RETRY%AdminNoGroup", "consumerProgress", "-g", "AdminNoGroup")

	// All groups: name, members, version, type, model, TPS, lag. Without members two columns are empty.
	rows := map[string]string{}
	for _, row := range table(k.run(t, "consumerProgress")) {
		rows[row[0]] = strings.Join(row[1:], " ")
	}
	for group, want := range map[string]string{"AdminGroup": `^0 OFFLINE \d+ 2$`, "AdminOnline": `^1 V4_9_8 PUSH CLUSTERING \d+ 0$`} {
		if !regexp.MustCompile(want).MatchString(rows[group]) {
			t.Errorf("consumerProgress of %s: %q, want %s", group, rows[group], want)
		}
	}
	// What was consumed of a topic shows behind its messages.
	list := k.run(t, "topicList", "-c")
	for _, group := range []string{"AdminGroup", "AdminOnline"} {
		if !regexp.MustCompile(`(?m)^ClusterOne +AdminTopic +` + group + ` *$`).MatchString(list) {
			t.Errorf("topicList -c lacks %s beside AdminTopic:\n%s", group, list)
		}
	}
}

func clusterList(t *testing.T, k kit) {
	// Cluster, broker, id, address, version, in, out, wait, hour, space.
	version := regexp.MustCompile(`^V4_9_\d$`)
	rows := sorted(table(k.run(t, "clusterList")))
	if len(rows) != 2 {
		t.Fatalf("got %v, want two brokers", rows)
	}
	for i, want := range [][]string{{"ClusterOne", "broker-a", "0", k.a.Addr}, {"ClusterTwo", "broker-b", "0", k.b.Addr}} {
		if row := rows[i]; len(row) < 10 || !slices.Equal(row[:4], want) || !version.MatchString(row[4]) {
			t.Errorf("clusterList: %v, want %v, a version and figures", row, want)
		}
	}
	// Cluster, broker, in and out yesterday, in and out today.
	more := sorted(table(k.run(t, "clusterList", "-m")))
	if len(more) != 2 || len(more[0]) != 6 {
		t.Fatalf("clusterList -m: %v", more)
	}
	if in, _ := strconv.Atoi(more[0][4]); in < 14 {
		t.Errorf("clusterList -m: %v, want at least the 14 messages sent today", more[0])
	}
	if out, _ := strconv.Atoi(more[0][5]); out < 12+14 {
		t.Errorf("clusterList -m: %v, want at least the messages consumed today", more[0])
	}
	if want := []string{"ClusterTwo", "broker-b", "0", "0", "0", "0"}; !slices.Equal(more[1], want) {
		t.Errorf("clusterList -m: %v, want %v", more[1], want)
	}
}

// statusKeys are the lines of brokerStatus that an official broker prints, whatever it has done.
var statusKeys = strings.Fields(`
	EndTransactionQueueSize EndTransactionThreadPoolQueueCapacity bootTimestamp brokerVersion brokerVersionDesc
	commitLogDirCapacity commitLogDiskRatio commitLogMaxOffset commitLogMinOffset consumeQueueDiskRatio dispatchBehindBytes
	dispatchMaxBuffer earliestMessageTimeStamp getFoundTps getMessageEntireTimeMax getMissTps getTotalTps getTransferedTps
	msgGetTotalTodayMorning msgGetTotalTodayNow msgGetTotalYesterdayMorning msgPutTotalTodayMorning msgPutTotalTodayNow
	msgPutTotalYesterdayMorning pageCacheLockTimeMills pullThreadPoolQueueCapacity pullThreadPoolQueueHeadWaitTimeMills
	pullThreadPoolQueueSize putLatency99 putLatency999 putMessageAverageSize putMessageDistributeTime putMessageEntireTimeMax
	putMessageFailedTimes putMessageSizeTotal putMessageTimesTotal putTps queryThreadPoolQueueCapacity
	queryThreadPoolQueueHeadWaitTimeMills queryThreadPoolQueueSize remainHowManyDataToFlush remainTransientStoreBufferNumbs
	runtime sendThreadPoolQueueCapacity sendThreadPoolQueueHeadWaitTimeMills sendThreadPoolQueueSize
	startAcceptSendRequestTimeStamp`)

func brokerStatus(t *testing.T, k kit) {
	got := pairs(k.run(t, "brokerStatus", "-b", k.a.Addr))
	for _, key := range statusKeys {
		if _, ok := got[key]; !ok {
			t.Errorf("brokerStatus lacks %s", key)
		}
	}
	// One line for each disk, too.
	if _, ok := got["commitLogDiskRatio_"+filepath.Join(k.a.StoreDir, "commitlog")]; !ok {
		t.Errorf("brokerStatus lacks the disk of the commit log: %v", got)
	}
	for key, least := range map[string]int{"msgPutTotalTodayNow": 14, "msgGetTotalTodayNow": 26, "putMessageTimesTotal": 14, "commitLogMaxOffset": 14 * 100} {
		if n, err := strconv.Atoi(got[key]); err != nil || n < least {
			t.Errorf("%s is %q, want at least %d", key, got[key], least)
		}
	}
	if got["dispatchBehindBytes"] != "0" || got["commitLogMinOffset"] != "0" {
		t.Errorf("dispatchBehindBytes %q, commitLogMinOffset %q, want 0", got["dispatchBehindBytes"], got["commitLogMinOffset"])
	}
	if !regexp.MustCompile(`^\[ 0 days, 0 hours, \d+ minutes, \d+ seconds \]$`).MatchString(got["runtime"]) {
		t.Errorf("runtime is %q", got["runtime"])
	}
	// By cluster, each line begins with the broker's address.
	out := k.run(t, "brokerStatus", "-c", "ClusterTwo")
	if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(k.b.Addr) + ` +bootTimestamp +: \d+`).MatchString(out) {
		t.Errorf("brokerStatus -c prints\n%s", out)
	}
}

func kvConfig(t *testing.T, k kit) {
	k.prints(t, "create or update kv config to namespace success.", "updateKvConfig", "-s", "AdminSpace", "-k", "one", "-v", "value one")
	// The name server keeps it in the official file.
	text, err := os.ReadFile(filepath.Join(filepath.Dir(k.target.NameServers[0].Log()), "kvConfig.json"))
	if err != nil || !strings.Contains(string(text), "AdminSpace") || !strings.Contains(string(text), "value one") {
		t.Errorf("kvConfig.json: %v\n%s", err, text)
	}
	k.prints(t, "delete kv config from namespace success.", "deleteKvConfig", "-s", "AdminSpace", "-k", "one")
	k.prints(t, "delete kv config from namespace success.", "deleteKvConfig", "-s", "AdminSpace", "-k", "never-there")
}

func updateOrderConf(t *testing.T, k kit) {
	k.prints(t, "get orderConf success. topic=[AdminOrder], orderConf=[broker-b:2]", "updateOrderConf", "-t", "AdminOrder", "-m", "get")
	k.prints(t, "update orderConf success. topic=[AdminOrder], orderConf=[broker-b:2;broker-x:3]",
		"updateOrderConf", "-t", "AdminOrder", "-v", "broker-b:2;broker-x:3", "-m", "put")
	k.prints(t, "get orderConf success. topic=[AdminOrder], orderConf=[broker-b:2;broker-x:3]", "updateOrderConf", "-t", "AdminOrder", "-m", "get")
	// The route shows it only with orderMessageEnable.
	k.prints(t, route("ClusterTwo", k.b, 6, 2, ""), "topicRoute", "-t", "AdminOrder")
	k.prints(t, "delete orderConf success. topic=[AdminOrder]", "updateOrderConf", "-t", "AdminOrder", "-m", "delete")
	k.fails(t, "CODE: 22  DESC: No config item, Namespace: ORDER_TOPIC_CONFIG Key: AdminOrder", "updateOrderConf", "-t", "AdminOrder", "-m", "get")
}

func writePerm(t *testing.T, k kit) {
	count := regexp.MustCompile(` OK, [1-9]\d*\s*$`)
	out := k.run(t, "wipeWritePerm", "-b", "broker-b")
	if !strings.HasPrefix(out, "wipe write perm of broker[broker-b] in name server["+k.target.Namesrv+"] OK, ") || !count.MatchString(out) {
		t.Errorf("wipeWritePerm prints %q", out)
	}
	k.prints(t, route("ClusterTwo", k.b, 4, 2, ""), "topicRoute", "-t", "AdminOrder")
	k.prints(t, route("ClusterOne", k.a, 6, 4, ""), "topicRoute", "-t", "AdminTopic")
	out = k.run(t, "addWritePerm", "-b", "broker-b")
	if !strings.HasPrefix(out, "add write perm of broker[broker-b] in name server["+k.target.Namesrv+"] OK, ") || !count.MatchString(out) {
		t.Errorf("addWritePerm prints %q", out)
	}
	k.prints(t, route("ClusterTwo", k.b, 6, 2, ""), "topicRoute", "-t", "AdminOrder")
}

func getNamesrvConfig(t *testing.T, k kit) {
	out := k.run(t, "getNamesrvConfig")
	if !strings.HasPrefix(out, "============"+k.target.Namesrv+"============\n") {
		t.Errorf("getNamesrvConfig prints\n%s", out)
	}
	got := pairs(out)
	_, port, _ := strings.Cut(k.target.Namesrv, ":")
	for key, want := range map[string]string{
		"listenPort": port, "productEnvName": "center", "clusterTest": "false", "orderMessageEnable": "false",
		"serverChannelMaxIdleTimeSeconds": "120", "rocketmqHome": filepath.Dir(k.target.NameServers[0].Log()),
		"kvConfigPath": filepath.Join(filepath.Dir(k.target.NameServers[0].Log()), "kvConfig.json"),
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if !strings.HasSuffix(got["configStorePath"], "namesrv.conf") {
		t.Errorf("configStorePath is %q, want the file of -c", got["configStorePath"])
	}
}

func deleteSubGroup(t *testing.T, k kit) {
	k.prints(t, "delete subscription group [AdminGroup] from broker ["+k.a.Addr+"] success.", "deleteSubGroup", "-b", k.a.Addr, "-g", "AdminGroup")
	k.prints(t, "delete subscription group [AdminNoGroup] from broker ["+k.a.Addr+"] success.", "deleteSubGroup", "-b", k.a.Addr, "-g", "AdminNoGroup")
	// -r takes the offsets, and the retry and dead-letter topics with them.
	k.prints(t, "delete subscription group [AdminGroup] from broker ["+k.a.Addr+"] in cluster [ClusterOne] success.\n"+
		"delete topic [%RETRY%AdminGroup] from cluster [ClusterOne] success.\ndelete topic [%RETRY%AdminGroup] from NameServer success.\n"+
		"delete topic [%DLQ%AdminGroup] from cluster [ClusterOne] success.\ndelete topic [%DLQ%AdminGroup] from NameServer success.",
		"deleteSubGroup", "-c", "ClusterOne", "-g", "AdminGroup", "-r", "true")
	if list := k.run(t, "topicList"); strings.Contains(list, "%RETRY%AdminGroup") {
		t.Errorf("the retry topic is still listed:\n%s", list)
	}
}

func deleteTopic(t *testing.T, k kit) {
	k.prints(t, "delete topic [AdminOrder] from cluster [ClusterTwo] success.\ndelete topic [AdminOrder] from NameServer success.",
		"deleteTopic", "-c", "ClusterTwo", "-t", "AdminOrder")
	k.eventually(t, func(out string) bool { return !slices.Contains(strings.Fields(out), "AdminOrder") }, "topicList")
	k.fails(t, "CODE: 17  DESC: No topic route info in name server for the topic: AdminOrder", "topicRoute", "-t", "AdminOrder")
	k.prints(t, "delete topic [AdminMissing] from cluster [ClusterOne] success.\ndelete topic [AdminMissing] from NameServer success.",
		"deleteTopic", "-c", "ClusterOne", "-t", "AdminMissing")
}
