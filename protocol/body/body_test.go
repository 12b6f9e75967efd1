package body

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rocketd/compat"
)

// types are the bodies that the test data names.
var types = map[string]func() any{
	"TopicRouteData":                     func() any { return new(TopicRouteData) },
	"ClusterInfo":                        func() any { return new(ClusterInfo) },
	"TopicList":                          func() any { return new(TopicList) },
	"KVTable":                            func() any { return new(KVTable) },
	"DataVersion":                        func() any { return new(DataVersion) },
	"TopicConfigAndQueueMapping":         func() any { return new(TopicConfigAndQueueMapping) },
	"TopicConfigSerializeWrapper":        func() any { return new(TopicConfigSerializeWrapper) },
	"RegisterBrokerBody":                 func() any { return new(RegisterBrokerBody) },
	"SubscriptionGroupConfig":            func() any { return new(SubscriptionGroupConfig) },
	"SubscriptionGroupWrapper":           func() any { return new(SubscriptionGroupWrapper) },
	"ConsumerOffsetSerializeWrapper":     func() any { return new(ConsumerOffsetSerializeWrapper) },
	"DelayOffsetSerializeWrapper":        func() any { return new(DelayOffsetSerializeWrapper) },
	"HeartbeatData":                      func() any { return new(HeartbeatData) },
	"GetConsumerListByGroupResponseBody": func() any { return new(GetConsumerListByGroupResponseBody) },
	"LockBatchRequestBody":               func() any { return new(LockBatchRequestBody) },
	"LockBatchResponseBody":              func() any { return new(LockBatchResponseBody) },
	"TopicStatsTable":                    func() any { return new(TopicStatsTable) },
	"ConsumeStats":                       func() any { return new(ConsumeStats) },
	"ConsumeStatsList":                   func() any { return new(ConsumeStatsList) },
	"ConsumerConnection":                 func() any { return new(ConsumerConnection) },
	"ProducerConnection":                 func() any { return new(ProducerConnection) },
	"ProducerTableInfo":                  func() any { return new(ProducerTableInfo) },
	"GroupList":                          func() any { return new(GroupList) },
	"QueryConsumeTimeSpanBody":           func() any { return new(QueryConsumeTimeSpanBody) },
	"QueryCorrectionOffsetBody":          func() any { return new(QueryCorrectionOffsetBody) },
	"ResetOffsetBody":                    func() any { return new(ResetOffsetBody) },
	"ResetOffsetBodyForC":                func() any { return new(ResetOffsetBodyForC) },
	"GetConsumerStatusBody":              func() any { return new(GetConsumerStatusBody) },
	"BrokerStatsData":                    func() any { return new(BrokerStatsData) },
	"CheckClientRequestBody":             func() any { return new(CheckClientRequestBody) },
	"QueryConsumeQueueResponseBody":      func() any { return new(QueryConsumeQueueResponseBody) },
	"OffsetMovedEvent":                   func() any { return new(OffsetMovedEvent) },
	"ConsumeByWho":                       func() any { return new(ConsumeByWho) },
}

// sample is one body of the test data.
type sample struct {
	name, text string
	pretty     bool
}

func samples(t testing.TB, file string) []sample {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []sample
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		name, text, _ := strings.Cut(line, ": ")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '|':
			last := &all[len(all)-1]
			if last.text != "" {
				last.text += "\n"
			}
			last.text += line[1:]
		case strings.HasSuffix(line, " pretty:"):
			all = append(all, sample{name: strings.TrimSuffix(line, " pretty:"), pretty: true})
		default:
			all = append(all, sample{name: name, text: text})
		}
	}
	return all
}

// TestExamples reads each body that the official classes wrote, and writes it to the byte. A Java map without
// an order may only have its entries in another one.
func TestExamples(t *testing.T) {
	all := samples(t, "testdata/examples.txt")
	for _, s := range all {
		v := types[s.name]()
		if err := compat.Unmarshal([]byte(s.text), v); err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		marshal := compat.Marshal
		switch {
		case s.pretty:
			marshal = compat.MarshalPretty
		case strings.Contains(s.text, `{"0":`): // a route in the standard form
			marshal = compat.MarshalStandard
		}
		got, err := marshal(v)
		want := strings.ReplaceAll(s.text, `"consumeTps":null`, `"consumeTps":0.0`) // null is read as 0
		if err != nil || string(got) != want && !reordered(string(got), want) {
			t.Errorf("%s: %v\n%s, want\n%s", s.name, err, got, want)
		}
	}
	if len(all) != 43 {
		t.Errorf("%d examples", len(all))
	}
}

// reordered tells whether two texts differ only in the order of a map's or a set's entries.
func reordered(got, want string) bool {
	if strings.Count(want, `"queueId"`) < 2 && !strings.Contains(want, `"topicList"`) {
		return false
	}
	a, b := []byte(got), []byte(want)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// TestRecorded reads each body that was recorded on the wire, writes it, and finds all members again: none is
// missing from the structs, none has another type.
func TestRecorded(t *testing.T) {
	all := samples(t, "testdata/recorded.txt")
	for _, s := range all {
		v := types[s.name]()
		if err := compat.Unmarshal([]byte(s.text), v); err != nil {
			t.Errorf("%s: %v in %s", s.name, err, s.text)
			continue
		}
		got, err := compat.Marshal(v)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		if got, want := generic(t, string(got)), generic(t, s.text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: wrote\n%v, read\n%v", s.name, got, want)
		}
		again := types[s.name]()
		if err := compat.Unmarshal(got, again); err != nil || !reflect.DeepEqual(v, again) {
			t.Errorf("%s: %v; read again %+v, first %+v", s.name, err, again, v)
		}
		if standard, err := compat.MarshalStandard(v); err != nil || !json.Valid(standard) {
			t.Errorf("%s: standard form: %v: %s", s.name, err, standard)
		}
	}
	if len(all) < 40 {
		t.Errorf("%d recorded bodies", len(all))
	}
}

// generic parses a body without its type. The Go client sends the numbers of codeSet as strings.
func generic(t *testing.T, text string) any {
	standard, err := compat.Standardize([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(regexp.MustCompile(`"(-?[0-9]+)"([],}])`).ReplaceAll(standard, []byte("$1$2")), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDefaults(t *testing.T) {
	var w TopicConfigSerializeWrapper
	if err := compat.Unmarshal([]byte(`{"topicConfigTable":{"T":{"topicName":"T","perm":4},"U":null}}`), &w); err != nil {
		t.Fatal(err)
	}
	if got, want := *w.TopicConfigTable["T"], (TopicConfig{TopicName: "T", ReadQueueNums: 16, WriteQueueNums: 16, Perm: 4, TopicFilterType: "SINGLE_TAG"}); !reflect.DeepEqual(got, want) || w.TopicConfigTable["U"] != nil {
		t.Errorf("topic %+v, want %+v", got, want)
	}
	var g SubscriptionGroupConfig
	if err := compat.Unmarshal([]byte(`{"groupName":"G","retryMaxTimes":3}`), &g); err != nil {
		t.Fatal(err)
	}
	if want := (SubscriptionGroupConfig{GroupName: "G", ConsumeEnable: true, ConsumeFromMinEnable: true, ConsumeBroadcastEnable: true, RetryQueueNums: 1,
		RetryMaxTimes: 3, WhichBrokerWhenConsumeSlowly: 1, NotifyConsumerIdsChangedEnable: true}); g != want {
		t.Errorf("group %+v, want %+v", g, want)
	}
}

// TestEnums: names, ordinals, unknown names.
func TestEnums(t *testing.T) {
	for text, want := range map[string]ConsumerData{
		`{"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_TIMESTAMP"}`: {ConsumeType: ConsumePassively, MessageModel: Clustering, ConsumeFromWhere: ConsumeFromTimestamp},
		`{"consumeType":1,"messageModel":0,"consumeFromWhere":4}`:                                                     {ConsumeType: ConsumePassively, MessageModel: Broadcasting, ConsumeFromWhere: ConsumeFromFirstOffset},
		`{"consumeType":"CONSUME_POP","messageModel":"X","consumeFromWhere":null}`:                                    {},
	} {
		var got ConsumerData
		if err := compat.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}
