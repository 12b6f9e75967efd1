//go:build conformance

package badinput

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rocketd/broker"
	"rocketd/conformance/wire"
	"rocketd/namesrv"
	"rocketd/protocol"
)

// Names of what the requests are about. All that a request could make or change begins with "BadInput".
const (
	badTopic = "BadInput"
	badGroup = "BadInputGroup"
	popGroup = "BadInputPop"  // of the POP codes
	gone     = "BadInputGone" // never there
	address  = "127.0.0.1:1"  // of a broker that never was
)

// plausible are the values of a right request, by key; more particular ones in ofCode.
var plausible = map[string]string{
	"topic": badTopic, "defaultTopic": "TBW102", "originTopic": badTopic,
	"consumerGroup": badGroup, "producerGroup": badGroup, "group": badGroup, "groupName": badGroup, "srcGroup": badGroup,
	"destGroup": "BadInputClone", "compareGroup": badGroup, "filterGroups": gone,
	"clientID": "BadInputClient", "clientId": "BadInputClient", "clientAddr": "",
	"brokerName": gone, "brokerAddr": address, "haServerAddr": address, "clusterName": gone, "cluster": gone, "bname": "broker-a",
	"namespace": "BadInputSpace", "key": "BadInputKey", "value": "v",
	"queueId": "0", "offset": "0", "queueOffset": "0", "commitOffset": "0", "index": "0", "count": "4", "maxMsgNums": "4", "maxNum": "4",
	"sysFlag": "0", "flag": "0", "reconsumeTimes": "0", "maxReconsumeTimes": "16", "delayLevel": "3", "suspendTimeoutMillis": "0",
	"subscription": "*", "subVersion": "0", "expressionType": "TAG", "properties": "KEYS\x01k", "defaultTopicQueueNums": "4",
	"bornTimestamp": "1700000000000", "beginTimestamp": "0", "endTimestamp": "9000000000000", "timestamp": "0", "brokerId": "7",
	"readQueueNums": "2", "writeQueueNums": "2", "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0",
	"recallHandle": "djEgVCBiIDE3IGs=", "invisibleTime": "60000", "pollTime": "0", "bornTime": "0", "initMode": "0", "expType": "TAG", "exp": "*", "attemptId": "x",
	"extraInfo": "0 1700000000000 60000 0 0 broker-a 0 0",
	"order":     "false", "unitMode": "false", "batch": "false", "compressed": "false", "isForce": "true", "isOrder": "false", "offline": "true",
	"jstackEnable": "false", "removeOffset": "false", "acceptStandardJsonOnly": "true", "bodyCrc32": "0",
	"statsName": "TOPIC_PUT_NUMS", "statsKey": badTopic, "msgId": "7F00000100002A9F0000000000000000", "originMsgId": "x",
	"tranStateTableOffset": "0", "commitLogOffset": "0", "commitOrRollback": "8", "fromTransactionCheck": "false", "transactionId": "x",
	"accessKey": "BadInputAccess", "secretKey": "12345678", "globalWhiteAddrs": "192.168.1.1",
}

// ofCode are the values of a right request that fit one code alone.
var ofCode = map[int]map[string]string{
	11:  {"sysFlag": "4"},
	17:  {"topic": "BadInputMade"},
	207: {"groupName": gone},
	215: {"topic": gone},
	216: {"topic": gone},
	320: {"batch": "true"},
	361: {"sysFlag": "4"},
	// What is popped commits offsets, on which the answers to other codes depend.
	200050: {"consumerGroup": popGroup}, 200051: {"consumerGroup": popGroup}, 200052: {"consumerGroup": popGroup},
	200053: {"consumerGroup": popGroup}, 200054: {"consumerGroup": popGroup}, 200055: {"consumerGroup": popGroup},
}

// bodies are those of a right request, of the codes that have one.
var bodies = map[int][]byte{
	10: []byte("hello"), 310: []byte("hello"), 320: wire.Batch("", []byte("one"), []byte("two")),
	25:     []byte("flushDelayOffsetInterval=10000\n"),
	34:     []byte(`{"clientID":"BadInputClient","consumerDataSet":[],"producerDataSet":[{"groupName":"BadInputGroup"}]}`),
	41:     []byte(`{"clientId":"BadInputClient","consumerGroup":"BadInputGroup","mqSet":[{"brokerName":"broker-a","queueId":0,"topic":"BadInput"}]}`),
	42:     []byte(`{"clientId":"BadInputClient","consumerGroup":"BadInputGroup","mqSet":[{"brokerName":"broker-a","queueId":0,"topic":"BadInput"}]}`),
	46:     []byte(`{"clientId":"BadInputClient","group":"BadInputGroup","subscriptionData":{"expressionType":"TAG","subString":"*","topic":"BadInput"}}`),
	103:    []byte(`{"topicConfigSerializeWrapper":{"dataVersion":{"counter":1,"timestamp":1},"topicConfigTable":{}},"filterServerList":[]}`),
	200:    []byte(`{"groupName":"BadInputGroup","retryQueueNums":1,"retryMaxTimes":16}`),
	400:    []byte(`{"topic":"BadInput","consumerGroup":"BadInputGroup","clientId":"BadInputClient","strategyName":"AVG","messageModel":"CLUSTERING"}`),
	401:    []byte(`{"topic":"BadInput","consumerGroup":"BadInputPop","mode":"POP","popShareQueueNum":0}`),
	200151: []byte(`{"brokerName":"broker-a","acks":[{"c":"BadInputGroup","t":"BadInput","r":"0","so":0,"q":0,"rq":0,"pt":1,"it":60000,"b":"AQ=="}]}`),
	318:    []byte("clusterTest=false\n"),
	322:    []byte(`{"counter":1,"timestamp":1}`),
}

// oneway is the case that wants no answer, and gets none, however wrong it is.
const oneway = "no header, oneway"

// badCase is one request to one of the servers.
type badCase struct {
	server string // "broker", "namesrv" or "fast", the broker's other port
	code   int
	name   string
	frame  func() *wire.Frame
}

// id is the case's line in the recording.
func (c badCase) id() string {
	return fmt.Sprintf("%s\t%d %s\t%s", c.server, c.code, protocol.RequestCode(c.code), c.name)
}

// cases makes the requests of all routed codes.
func cases() (all []badCase) {
	for _, of := range []struct {
		server string
		plans  map[protocol.RequestCode]*protocol.Plan
	}{{"namesrv", namesrv.Headers()}, {"broker", brokers()}, {"fast", brokers()}} {
		for _, code := range slices.Sorted(maps.Keys(of.plans)) {
			m := maker{server: of.server, code: int(code), fields: of.plans[code].Fields()}
			if of.server == "fast" { // the same handlers: only whether they are there is a question
				m.add("right", func(*wire.Frame) {})
				m.add("no header", func(f *wire.Frame) { f.Ext = nil })
			} else {
				m.make()
			}
			all = append(all, m.cases...)
		}
	}
	return all
}

// brokers are the headers of the codes that a broker serves.
func brokers() map[protocol.RequestCode]*protocol.Plan { return broker.Headers() }

// maker makes the cases of one code.
type maker struct {
	server string
	code   int
	fields []protocol.HeaderField
	cases  []badCase
}

// key is the spelling that clients of the code use.
func (m *maker) key(f protocol.HeaderField) string {
	if f.Letter != "" && (m.code == 310 || m.code == 320) {
		return f.Letter
	}
	return f.Key
}

func (m *maker) right() *wire.Frame {
	f := wire.Request(m.code).WithBody(bodies[m.code])
	for _, field := range m.fields {
		value, ok := ofCode[m.code][field.Key]
		if !ok {
			value = plausible[field.Key]
		}
		if value != "" {
			f.Set(m.key(field), value)
		}
	}
	return f
}

func (m *maker) add(name string, change func(*wire.Frame)) {
	m.cases = append(m.cases, badCase{m.server, m.code, name, func() *wire.Frame {
		f := m.right()
		change(f)
		return f
	}})
}

func (m *maker) make() {
	m.add("right", func(*wire.Frame) {})
	m.add("right, binary", func(f *wire.Frame) { f.Form = wire.Binary })
	m.add("no header", func(f *wire.Frame) { f.Ext = nil })
	m.add("no header, binary", func(f *wire.Frame) { f.Ext, f.Form = nil, wire.Binary })
	m.add(oneway, func(f *wire.Frame) { f.Ext, f.Flag = nil, wire.FlagOneway })
	for i, field := range m.fields {
		m.addField(i, field)
	}
	m.addBodies()
}

func (m *maker) addField(i int, field protocol.HeaderField) {
	key := m.key(field)
	set := func(what, value string) {
		m.add(key+" "+what, func(f *wire.Frame) { f.Set(key, value) })
	}
	m.add(key+" missing", func(f *wire.Frame) { f.Without(key) })
	if i == 0 {
		m.add(key+" missing, binary", func(f *wire.Frame) { f.Without(key).Form = wire.Binary })
	}
	set("empty", "")
	if !field.Number {
		set("unknown", "BadInputUnknown")
		set("long", "BadInput"+strings.Repeat("l", 300))
		return
	}
	set("no number", "x!")
	set("no number in long", "99999999999999999999")
	set("negative", "-1")
	set("largest int", "2147483647")
	if i == 0 {
		m.add(key+" no number, binary", func(f *wire.Frame) { f.Set(key, "x!").Form = wire.Binary })
	}
}

func (m *maker) addBodies() {
	right := bodies[m.code]
	for _, b := range []struct {
		name string
		body []byte
	}{
		{"none", nil}, {"half", right[:len(right)/2]}, {"open brace", []byte("{")}, {"no JSON", []byte("x!")},
		{"array", []byte("[]")}, {"object", []byte("{}")}, {"null", []byte("null")}, {"other shape", []byte(`{"mqSet":7,"consumerDataSet":{"a":[1]},"groupName":[[]]}`)},
		{"12 MiB", nil}, {"16 MiB", nil},
	} {
		if b.name == "half" && right == nil || b.name == "none" && right == nil {
			continue
		}
		m.add("body "+b.name, func(f *wire.Frame) {
			switch b.name {
			case "12 MiB":
				f.WithBody(bytes.Repeat([]byte("bad "), 3<<20))
			case "16 MiB": // with its header more than a frame may hold
				f.WithBody(make([]byte, 16<<20))
			default:
				f.WithBody(b.body)
			}
		})
	}
}
