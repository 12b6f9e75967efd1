//go:build conformance

package badinput

import (
	"flag"
	"net"
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

// patience bounds every wait for something that must happen.
const patience = 20 * time.Second

var update = flag.Bool("update", false, "write what the official server answers into testdata")

// Files of what the official server did: its answers, and what it had changed in its tables at the end.
var (
	answersFile = filepath.Join("testdata", "official.tsv")
	changesFile = filepath.Join("testdata", "official-changes.txt")
)

// settings of the broker under test: nothing comes into being by itself, and no check of transactions falls into a slow run.
var settings = map[string]string{
	"autoCreateTopicEnable": "false", "autoCreateSubscriptionGroup": "false", "transactionCheckInterval": "3600000",
}

func TestBadInput(t *testing.T) {
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{{Conf: settings}}})
	if *update && c.Kind != target.Official {
		t.Fatal("-update is for CONFORMANCE_TARGET=official")
	}
	prepare(t, c)
	before, live := readTables(t, c), liveOf(t, c)
	official := &recording{answers: map[string]answer{}}
	if !*update {
		var err error
		if official, err = readRecording(answersFile); err != nil {
			t.Fatal(err)
		}
	}
	askAll(t, c, official, cases(), differences)
	checkChanges(t, c, before)
	checkMessages(t, c)
	live.check(t, c)
	if *update && !t.Failed() {
		if err := official.write(answersFile); err != nil {
			t.Fatal(err)
		}
	}
}

// prepare makes the topic and the group that the requests name, and things that none of them names.
func prepare(t *testing.T, c *target.Target) {
	t.Helper()
	broker := c.Brokers[0].Addr
	for _, topic := range []string{badTopic, "Kept"} {
		call(t, broker, wire.Request(17, "topic", topic, "defaultTopic", "TBW102", "readQueueNums", "2", "writeQueueNums", "2", "perm", "6",
			"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"))
	}
	for _, group := range []string{badGroup, popGroup, "KeptGroup"} {
		call(t, broker, wire.Request(200).WithBody([]byte(`{"groupName":"`+group+`","retryQueueNums":1,"retryMaxTimes":7}`)))
	}
	call(t, broker, wire.Request(15, "consumerGroup", "KeptGroup", "topic", "Kept", "queueId", "1", "commitOffset", "5"))
	call(t, c.NameServers[0].Addr, wire.Request(100, "namespace", "ORDER_TOPIC_CONFIG", "key", "Kept", "value", "broker-a:2"))
	call(t, broker, wire.Request(310, "a", badGroup, "b", badTopic, "c", "TBW102", "d", "4", "e", "0", "f", "0", "g", "1700000000000", "h", "0",
		"i", "", "j", "0", "k", "false", "m", "false").WithBody([]byte("first")))
}

// askAll makes requests and compares the answers, or takes them down. Each of the differences must show.
func askAll(t *testing.T, c *target.Target, official *recording, list []badCase, differences []difference) {
	t.Helper()
	used := map[int]bool{}
	for _, bad := range list {
		want, known := official.answers[bad.id()]
		if ofLater[bad.code] && c.Kind == target.Official {
			continue
		}
		known = known || ofLater[bad.code]
		if !known && !*update {
			t.Errorf("%s: the official answer is not recorded; run with -update", bad.id())
			continue
		}
		addr, probe := c.Brokers[0].Addr, wire.Request(30, "topic", "Kept", "queueId", "0")
		switch bad.server {
		case "namesrv":
			addr, probe = c.NameServers[0].Addr, wire.Request(206)
		case "fast":
			addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Brokers[0].Port()-2))
		}
		short := patience
		if bad.name == oneway {
			short = time.Second / 20
		} else if *update {
			short = 7 * time.Second // a held pull is looked after every 5 s
		} else if want.code == silent {
			short = time.Second / 2
		}
		got, err := ask(addr, bad.frame(), probe, patience, short)
		if err != nil {
			t.Fatalf("%s: %v", bad.id(), err)
		}
		if *update {
			official.put(bad.id(), got)
			continue
		}
		if got.isLike(want) || ofLater[bad.code] && (got.code != 3 || bad.server == "fast" || binaryLost(bad)) && (got.kept || bad.name == "body 16 MiB") {
			continue
		}
		if n, ok := findDifference(differences, bad, got, want); ok && c.Kind == target.Rocketd {
			used[n] = true
		} else {
			t.Errorf("%s\n\tanswered %v\n\tofficial %v", bad.id(), got, want)
		}
	}
	if c.Kind == target.Rocketd {
		for n, d := range differences {
			if !used[n] {
				t.Errorf("the difference %d %s %q is none any more", d.code, d.server, d.cases)
			}
		}
	}
}

// checkChanges compares what the requests have changed in the tables with what they changed in the official ones. Some are
// no mistakes to the official server, such as an offset of a topic that is not there; more than its rocketd may not change.
func checkChanges(t *testing.T, c *target.Target, before tables) {
	t.Helper()
	var allowed []string
	if !*update {
		text, err := os.ReadFile(changesFile)
		if err != nil {
			t.Fatal(err)
		}
		allowed = strings.Split(string(text), "\n")
	}
	var changes []string
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-every.C { // a connection's end takes its broker off the routes
		changes = readTables(t, c).changed(before)
		left := slices.DeleteFunc(without(changes, allowed), laterChanges.MatchString)
		if !*update && len(left) == 0 {
			break
		}
	}
	if *update {
		if err := os.WriteFile(changesFile, []byte(strings.Join(changes, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, change := range without(changes, allowed) {
		if laterChanges.MatchString(change) {
			continue
		}
		t.Errorf("in the tables, not in the official ones: %s", change)
	}
}

// checkMessages reads all that the sends among the requests have stored: whatever flags they gave, each is a whole record that
// clients can read.
func checkMessages(t *testing.T, c *target.Target) {
	t.Helper()
	conn, err := wire.Dial(c.Brokers[0].Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	read := 0
	for queueId := range 2 {
		for offset, more := "0", true; more; {
			f, err := conn.Call(wire.Request(11, "consumerGroup", "KeptGroup", "topic", badTopic, "queueId", strconv.Itoa(queueId), "queueOffset", offset,
				"maxMsgNums", "32", "sysFlag", "4", "commitOffset", "0", "suspendTimeoutMillis", "0", "subscription", "*", "subVersion", "0",
				"expressionType", "TAG"), patience)
			if err != nil {
				t.Fatal(err)
			}
			ms, err := wire.Messages(f.Body)
			if err != nil {
				t.Errorf("queue %d from %s: %v", queueId, offset, err)
			}
			read += len(ms)
			more, offset = f.Code == 0 || f.Code == 20, f.Ext["nextBeginOffset"]
		}
	}
	if read < 10 { // the right ones of three codes in both forms are more
		t.Errorf("only %d messages are stored", read)
	}
}
