package broker

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rocketd/protocol"
	"rocketd/remoting/remotingtest"
)

// hostileNames are names that would leave the folder that they were used in, or would be no name of a file at all. base is a folder
// outside of store and configuration.
func hostileNames(base string) []string {
	return []string{
		"../hostile", "../../../../hostile", "..", ".", "../../../../keep", "a/../../../../../hostile", base + "/hostile", base + "/keep", base + "/keep/file", "hostile/hostile",
		`..\..\..\hostile`, "hostile\x00/../../..", "\x00", "%2e%2e%2f%2e%2e%2fhostile", "%2fhostile", "file://" + base + "/hostile",
		"~/hostile", "$HOME/hostile", "hostile\n/hostile", strings.Repeat("h", 300), strings.Repeat("../", 3000) + "hostile",
	}
}

// usual are values of fields that a request may have beside the hostile one.
var usual = map[string]string{
	"topic": "Usual", "defaultTopic": "TBW102", "group": "UsualGroup", "consumerGroup": "UsualGroup", "producerGroup": "UsualGroup", "groupName": "UsualGroup",
	"srcGroup": "UsualGroup", "destGroup": "UsualClone", "properties": "KEYS\x01k", "subscription": "*", "expressionType": "TAG", "topicFilterType": "SINGLE_TAG",
	"sysFlag": "0", "maxMsgNums": "4", "defaultTopicQueueNums": "4", "readQueueNums": "2", "writeQueueNums": "2", "perm": "6", "bornTimestamp": "1700000000000",
	"suspendTimeoutMillis": "0", "pollTime": "0", "invisibleTime": "60000", "extraInfo": "0 1700000000000 60000 0 0 broker-a 0 0", "initMode": "0",
	"accessKey": "usualKey", "secretKey": "usualSecret", "globalWhiteAddrs": "127.0.0.1", "timestamp": "0", "isForce": "true", "removeOffset": "true",
	"statsName": "TOPIC_PUT_NUMS", "delayLevel": "3", "originTopic": "Usual", "commitOrRollback": "8",
}

// hostileBodies are bodies with a place for a name.
var hostileBodies = map[protocol.RequestCode][]string{
	protocol.HeartBeat: {
		`{"clientID":"c","consumerDataSet":[{"groupName":NAME,"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","subscriptionDataSet":[{"topic":NAME,"subString":"*"}]}],"producerDataSet":[{"groupName":NAME}]}`,
		`{"clientID":NAME,"consumerDataSet":[],"producerDataSet":[{"groupName":"UsualGroup"}]}`,
	},
	protocol.LockBatchMQ:                      {`{"clientId":NAME,"consumerGroup":NAME,"mqSet":[{"brokerName":NAME,"queueId":0,"topic":NAME}]}`},
	protocol.UnlockBatchMQ:                    {`{"clientId":NAME,"consumerGroup":NAME,"mqSet":[{"brokerName":NAME,"queueId":0,"topic":NAME}]}`},
	protocol.CheckClientConfig:                {`{"clientId":NAME,"group":NAME,"subscriptionData":{"expressionType":"SQL92","subString":"a=1","topic":NAME}}`},
	protocol.UpdateAndCreateSubscriptionGroup: {`{"groupName":NAME,"retryQueueNums":1,"retryMaxTimes":16,"consumeEnable":true}`},
	protocol.QueryAssignment:                  {`{"topic":NAME,"consumerGroup":NAME,"clientId":NAME,"strategyName":"AVG","messageModel":"CLUSTERING"}`},
	protocol.SetMessageRequestMode:            {`{"topic":NAME,"consumerGroup":NAME,"mode":"POP","popShareQueueNum":0}`},
	protocol.BatchAckMessage:                  {`{"brokerName":NAME,"acks":[{"c":NAME,"t":NAME,"r":"0","so":0,"q":0,"rq":0,"pt":1,"it":60000,"b":"AQ=="}]}`},
}

// hostileProperties are properties of messages that name topics or groups.
var hostileProperties = []string{"REAL_TOPIC", "RETRY_TOPIC", "INNER_MULTI_DISPATCH", "PGROUP", "REPLY_TO_CLIENT", "UNIQ_KEY", "KEYS", "ORIGIN_GROUP", "CLUSTER", "INSTANCE_ID"}

// legalFolder is the name of a queue's folder: that of a topic, or of a light queue.
var legalFolder = regexp.MustCompile(`^[%|a-zA-Z0-9_-]{1,255}$`)

// tree is every file below a folder with its size, but for those below the folders that are left out.
func tree(t *testing.T, root string, without ...string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains(without, path) {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[path] = fmt.Sprint(info.Mode(), info.IsDir() || info.Size() >= 0)
		if !info.IsDir() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all[path] += string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// house is a broker on files of the system, deep below a base that it may not touch.
type house struct {
	base, store, conf string
	file              string // the configuration file
	before            map[string]string
}

func newHouse(t *testing.T) *house {
	h := &house{base: t.TempDir()}
	h.store, h.conf = filepath.Join(h.base, "a", "b", "store"), filepath.Join(h.base, "a", "b", "conf")
	h.file = secretFile(t, filepath.Join(h.conf, "broker.conf"), "brokerName=broker-a\nvendorKey=7\n")
	secretFile(t, filepath.Join(h.conf, "plain_acl.yml"), "globalWhiteRemoteAddresses:\n- 127.0.0.1\naccounts:\n- accessKey: theAdmin\n  secretKey: adminSecret\n  admin: true\n")
	secretFile(t, filepath.Join(h.base, "keep", "file"), "stays")
	secretFile(t, filepath.Join(h.base, "a", "keep", "0", "00000000000000000000"), "stays")
	h.before = tree(t, h.base, h.store, h.conf)
	return h
}

// start starts a broker that takes whatever it may; it is closed when the test ends.
func (h *house) start(t *testing.T) *pathBroker {
	t.Helper()
	return startPathBrokerOn(t, nil, func(cfg *Config) {
		*cfg, _ = ReadConfig(h.file, *cfg)
		cfg.StorePathRootDir, cfg.RocketmqHome = h.store, filepath.Join(h.base, "a", "b")
		cfg.AclEnable, cfg.EnableLmq, cfg.EnableMultiDispatch, cfg.EnablePropertyFilter, cfg.TraceTopicEnable = true, true, true, true, true
		cfg.MappedFileSizeCommitLog, cfg.MappedFileSizeConsumeQueue = 1<<20, 20*100
	})
}

// check compares what lies outside of store and configuration with what lay there, and looks at the names inside.
func (h *house) check(t *testing.T) {
	t.Helper()
	after := tree(t, h.base, h.store, h.conf)
	for path, what := range after {
		if h.before[path] != what {
			t.Errorf("%s was made or changed", path)
		}
	}
	for path := range h.before {
		if _, ok := after[path]; !ok {
			t.Errorf("%s is gone", path)
		}
	}
	for path := range tree(t, h.store) {
		rel, err := filepath.Rel(h.store, path)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(rel, string(filepath.Separator))
		if parts[0] == "consumequeue" && len(parts) > 1 && (!legalFolder.MatchString(parts[1]) || len(parts) > 4) ||
			parts[0] != "consumequeue" && strings.Contains(rel, "hostile") {
			t.Errorf("in the store: %s", rel)
		}
	}
	for path := range tree(t, h.conf) {
		if name := filepath.Base(path); path != h.conf && !slices.Contains([]string{"broker.conf", "broker.conf.bak", "plain_acl.yml"}, name) {
			t.Errorf("in the folder of the configuration: %s", name)
		}
	}
}

// TestTraversal: no field, body or property of any request makes, changes or deletes a file outside of store and configuration,
// whatever name it has, nor a folder in the store that is no topic's; and after a restart neither.
func TestTraversal(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.start(t)
	names := hostileNames(h.base)
	for _, code := range slices.Sorted(maps.Keys(Headers())) {
		fields := Headers()[code].Fields()
		request := func(hostile, name string) *protocol.Command {
			cmd := p.request(code, nil, []byte("body"))
			for _, f := range fields {
				value, ok := usual[f.Key]
				switch {
				case f.Key == hostile:
					value = name
				case ok:
				case f.Number:
					value = "0"
				default:
					value = "Usual"
				}
				cmd.SetField(f.Key, value)
			}
			return cmd
		}
		var sent []*protocol.Command
		for _, name := range names {
			quoted, err := json.Marshal(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range fields {
				if !f.Number {
					sent = append(sent, request(f.Key, name))
				}
				if f.Key == "properties" {
					for _, property := range hostileProperties {
						sent = append(sent, request("properties", property+"\x01"+name+"\x02MSG_TYPE\x01reply"))
						sent = append(sent, request("properties", property+"\x01%LMQ%"+name+"\x02DELAY\x011"))
					}
				}
			}
			for _, body := range hostileBodies[code] {
				cmd := request("", "")
				cmd.Body = []byte(strings.ReplaceAll(body, "NAME", string(quoted)))
				sent = append(sent, cmd)
			}
		}
		h.ask(t, p, code, sent)
	}
	h.askPaths(t, p, names)
	for _, code := range []protocol.RequestCode{protocol.CleanUnusedTopic, protocol.CleanExpiredConsumeQueue, protocol.DeleteExpiredCommitLog} {
		check(t, code.String(), p.ask(code, nil, nil), protocol.Success, "")
	}
	p.close()
	h.check(t)
	again := h.start(t)
	if cfg := again.Config(); cfg.StorePathRootDir != h.store || cfg.BrokerName != "broker-a" {
		t.Errorf("after a restart the store is at %s, the name %s", cfg.StorePathRootDir, cfg.BrokerName)
	}
	again.close()
	h.check(t)
}

// ask sends requests at once, and waits until all are read: each has been looked at then, and those in lanes are done at the close.
func (h *house) ask(t *testing.T, p *pathBroker, code protocol.RequestCode, sent []*protocol.Command) {
	t.Helper()
	if len(sent) == 0 {
		return
	}
	peer := p.dial()
	defer peer.Close()
	refused := map[protocol.RequestCode]bool{protocol.UpdateAndCreateTopic: true, protocol.SendMessage: true, protocol.SendMessageV2: true}
	for _, cmd := range sent {
		last := p.request(protocol.GetMaxOffset, nil, nil)
		peer.Send(cmd, last)
		for {
			a := peer.Receive()
			topic, _ := cmd.Field("topic")
			if a.Opaque == cmd.Opaque && a.Code == 0 && refused[code] && (!legalFolder.MatchString(topic) || len(topic) > 127) {
				t.Errorf("%v: topic %.60q is taken", code, topic)
			}
			if a.Opaque == last.Opaque {
				break
			}
		}
	}
}

// askPaths gives the configuration keys that are paths, and those that become names of topics.
func (h *house) askPaths(t *testing.T, p *pathBroker, names []string) {
	t.Helper()
	for _, name := range names {
		value := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\x00", `\u0000`).Replace(name)
		for _, key := range []string{"storePathRootDir", "storePathCommitLog", "storePathDLedgerCommitLog", "readOnlyCommitLogStorePaths", "rocketmqHome", "aclPlainFile",
			"brokerConfigPath", "namesrvAccountFile", "tls.config.file", "tls.server.certPath", "tls.server.keyPath"} {
			check(t, key, p.ask(protocol.UpdateBrokerConfig, nil, []byte(key+"="+value+"\n")), protocol.NoPermission, "Can not update config in black list.")
		}
		for _, key := range []string{"msgTraceTopicName", "brokerClusterName", "regionId"} {
			p.ask(protocol.UpdateBrokerConfig, nil, []byte(key+"="+value+"\n"))
		}
		if a := p.ask(protocol.UpdateBrokerConfig, nil, []byte("brokerName="+value+"\n")); a.Code == 0 {
			check(t, "brokerName again", p.ask(protocol.UpdateBrokerConfig, nil, []byte("brokerName=broker-a\n")), protocol.Success, "")
		}
	}
	remotingtest.Eventually(t, "a message of the good topic is stored", func() bool {
		return p.ask(protocol.SendMessage, sendHeader("Usual", 0, ""), []byte("x")).Code == 0
	})
}
