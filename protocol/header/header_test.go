package header

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"rocketd/protocol"
)

// headers are the structs by the name of their official class.
var headers = map[string]any{
	"AddWritePermOfBrokerRequestHeader":         &AddWritePermOfBrokerRequest{},
	"AddWritePermOfBrokerResponseHeader":        &AddWritePermOfBrokerResponse{},
	"CheckTransactionStateRequestHeader":        &CheckTransactionStateRequest{},
	"CloneGroupOffsetRequestHeader":             &CloneGroupOffsetRequest{},
	"ConsumeMessageDirectlyResultRequestHeader": &ConsumeMessageDirectlyResultRequest{},
	"ConsumerSendMsgBackRequestHeader":          &ConsumerSendMsgBackRequest{},
	"CreateAccessConfigRequestHeader":           &CreateAccessConfigRequest{},
	"CreateTopicRequestHeader":                  &CreateTopicRequest{},
	"DeleteAccessConfigRequestHeader":           &DeleteAccessConfigRequest{},
	"DeleteKVConfigRequestHeader":               &DeleteKVConfigRequest{},
	"DeleteSubscriptionGroupRequestHeader":      &DeleteSubscriptionGroupRequest{},
	"DeleteTopicFromNamesrvRequestHeader":       &DeleteTopicFromNamesrvRequest{},
	"DeleteTopicRequestHeader":                  &DeleteTopicRequest{},
	"EndTransactionRequestHeader":               &EndTransactionRequest{},
	"EndTransactionResponseHeader":              &Empty{},
	"GetAllProducerInfoRequestHeader":           &Empty{},
	"GetAllTopicConfigResponseHeader":           &Empty{},
	"GetBrokerAclConfigResponseHeader":          &GetBrokerAclConfigResponse{},
	"GetBrokerConfigResponseHeader":             &GetBrokerConfigResponse{},
	"GetConsumeStatsInBrokerHeader":             &GetConsumeStatsInBroker{},
	"GetConsumeStatsRequestHeader":              &GetConsumeStatsRequest{},
	"GetConsumerConnectionListRequestHeader":    &GetConsumerConnectionListRequest{},
	"GetConsumerListByGroupRequestHeader":       &GetConsumerListByGroupRequest{},
	"GetConsumerListByGroupResponseHeader":      &Empty{},
	"GetConsumerRunningInfoRequestHeader":       &GetConsumerRunningInfoRequest{},
	"GetConsumerStatusRequestHeader":            &GetConsumerStatusRequest{},
	"GetEarliestMsgStoretimeRequestHeader":      &GetEarliestMsgStoretimeRequest{},
	"GetEarliestMsgStoretimeResponseHeader":     &GetEarliestMsgStoretimeResponse{},
	"GetKVConfigRequestHeader":                  &GetKVConfigRequest{},
	"GetKVConfigResponseHeader":                 &GetKVConfigResponse{},
	"GetKVListByNamespaceRequestHeader":         &GetKVListByNamespaceRequest{},
	"GetMaxOffsetRequestHeader":                 &GetMaxOffsetRequest{},
	"GetMaxOffsetResponseHeader":                &GetMaxOffsetResponse{},
	"GetMinOffsetRequestHeader":                 &GetMinOffsetRequest{},
	"GetMinOffsetResponseHeader":                &GetMinOffsetResponse{},
	"GetProducerConnectionListRequestHeader":    &GetProducerConnectionListRequest{},
	"GetRouteInfoRequestHeader":                 &GetRouteInfoRequest{},
	"GetTopicStatsInfoRequestHeader":            &GetTopicStatsInfoRequest{},
	"GetTopicsByClusterRequestHeader":           &GetTopicsByClusterRequest{},
	"NotifyConsumerIdsChangedRequestHeader":     &NotifyConsumerIdsChangedRequest{},
	"PullMessageRequestHeader":                  &PullMessageRequest{},
	"PullMessageResponseHeader":                 &PullMessageResponse{},
	"PutKVConfigRequestHeader":                  &PutKVConfigRequest{},
	"QueryConsumeQueueRequestHeader":            &QueryConsumeQueueRequest{},
	"QueryConsumeTimeSpanRequestHeader":         &QueryConsumeTimeSpanRequest{},
	"QueryConsumerOffsetRequestHeader":          &QueryConsumerOffsetRequest{},
	"QueryConsumerOffsetResponseHeader":         &QueryConsumerOffsetResponse{},
	"QueryCorrectionOffsetHeader":               &QueryCorrectionOffset{},
	"QueryDataVersionRequestHeader":             &QueryDataVersionRequest{},
	"QueryDataVersionResponseHeader":            &QueryDataVersionResponse{},
	"QueryMessageRequestHeader":                 &QueryMessageRequest{},
	"QueryMessageResponseHeader":                &QueryMessageResponse{},
	"QueryTopicConsumeByWhoRequestHeader":       &QueryTopicConsumeByWhoRequest{},
	"RegisterBrokerRequestHeader":               &RegisterBrokerRequest{},
	"RegisterBrokerResponseHeader":              &RegisterBrokerResponse{},
	"ReplyMessageRequestHeader":                 &ReplyMessageRequest{},
	"ResetOffsetRequestHeader":                  &ResetOffsetRequest{},
	"ResumeCheckHalfMessageRequestHeader":       &ResumeCheckHalfMessageRequest{},
	"SearchOffsetRequestHeader":                 &SearchOffsetRequest{},
	"SearchOffsetResponseHeader":                &SearchOffsetResponse{},
	"SendMessageRequestHeader":                  &SendMessageRequest{},
	"SendMessageRequestHeaderV2":                &SendMessageRequest{},
	"SendMessageResponseHeader":                 &SendMessageResponse{},
	"UnRegisterBrokerRequestHeader":             &UnRegisterBrokerRequest{},
	"UnregisterClientRequestHeader":             &UnregisterClientRequest{},
	"UnregisterClientResponseHeader":            &Empty{},
	"UpdateConsumerOffsetRequestHeader":         &UpdateConsumerOffsetRequest{},
	"UpdateConsumerOffsetResponseHeader":        &Empty{},
	"UpdateGlobalWhiteAddrsConfigRequestHeader": &UpdateGlobalWhiteAddrsConfigRequest{},
	"ViewBrokerStatsDataRequestHeader":          &ViewBrokerStatsDataRequest{},
	"ViewMessageRequestHeader":                  &ViewMessageRequest{},
	"ViewMessageResponseHeader":                 &Empty{},
	"WipeWritePermOfBrokerRequestHeader":        &WipeWritePermOfBrokerRequest{},
	"WipeWritePermOfBrokerResponseHeader":       &WipeWritePermOfBrokerResponse{},
}

// excused are classes that 4.9.8 declares and no server of it sends or takes.
var excused = map[string]string{
	"CheckTransactionStateResponseHeader":     "a client answers the check with END_TRANSACTION",
	"RegisterFilterServerRequestHeader":       "there are no filter servers any more",
	"RegisterFilterServerResponseHeader":      "there are no filter servers any more",
	"RegisterMessageFilterClassRequestHeader": "there are no filter servers any more",
	"RegisterOrderTopicRequestHeader":         "its request code is gone",
}

// samples are a text for each type, and what the field then holds.
var samples = map[string]struct {
	text  string
	value any
}{
	"String": {"text", "text"}, "Integer": {"7", int32(7)}, "int": {"7", int32(7)}, "Long": {"7", int64(7)}, "long": {"7", int64(7)},
	"Boolean": {"true", true}, "boolean": {"true", true},
}

// TestOfficialFields binds every field of every official class to its struct, by its own key and type, and finds no
// field in a struct that the class lacks.
func TestOfficialFields(t *testing.T) {
	data, err := os.ReadFile("testdata/headers.tsv")
	if err != nil {
		t.Fatal(err)
	}
	fields := make(map[string]map[string]string) // class, key, type
	for line := range strings.Lines(string(data)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if line[0] == '#' {
			continue
		}
		if fields[words[0]] == nil {
			fields[words[0]] = make(map[string]string)
		}
		if words[1] != "(none)" {
			fields[words[0]][words[1]] = words[2]
		}
	}
	if len(fields) < 75 {
		t.Errorf("%d classes", len(fields))
	}
	for class, keys := range fields {
		h := headers[class]
		if h == nil {
			if excused[class] == "" {
				t.Errorf("%s has no struct", class)
			}
			continue
		}
		plan := protocol.PlanFor(h)
		for key, kind := range keys {
			dst := reflect.New(reflect.TypeOf(h).Elem())
			_ = plan.Bind(&protocol.Command{Fields: []protocol.Field{{Key: key, Value: samples[kind].text}}}, dst.Interface()) // others may be required
			if !holds(dst.Elem(), samples[kind].value) {
				t.Errorf("%s: key %s of type %s is not bound: %+v", class, key, kind, dst.Elem())
			}
		}
		if class == "SendMessageRequestHeaderV2" {
			continue // the struct's own keys are the long ones
		}
		for _, key := range plan.Keys() {
			if keys[key] == "" && key != "recallHandle" && key != "attributes" { // of 5.3.3
				t.Errorf("%s has no key %s", class, key)
			}
		}
	}
}

// holds tells whether just one field is set, and to v, be it an Optional.
func holds(s reflect.Value, v any) bool {
	found := false
	for i := range s.NumField() {
		f := s.Field(i)
		if f.Type() == reflect.TypeFor[protocol.Missing]() {
			continue
		}
		if f.Kind() == reflect.Struct {
			f = f.Field(0)
		}
		switch {
		case f.IsZero():
		case !reflect.DeepEqual(f.Interface(), v) || found:
			return false
		default:
			found = true
		}
	}
	return found
}
