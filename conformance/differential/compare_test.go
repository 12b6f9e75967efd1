//go:build conformance

package differential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"rocketd/conformance/wire"
)

// volatileExt are the ext fields whose values say nothing about compatibility, each with the reason.
var volatileExt = map[string]string{
	"msgId":                    "holds the broker's address and the log offset",
	"indexLastUpdateTimestamp": "the store time of the newest message in the index, of any topic",
	"allAclFileVersion":        "where the broker keeps its accounts, and when they were changed",
	"indexLastUpdatePhyoffset": "the log offset of the newest message in the index, of any topic",
}

// volatileJSON are the members of JSON bodies whose values say nothing about compatibility. What kind of value it is, and
// the members that it has, must be as recorded; of tables, the entries that both have must be equal.
var volatileJSON = map[string]string{
	"topicList":              "all topics of the server, also those of other sessions",
	"topicConfigTable":       "the same with their configurations",
	"subscriptionGroupTable": "all groups of the server, also those of other sessions",
	"dataVersion":            "a counter of all changes, and the time of the last",

	"clientAddr":           "the client's port",
	"remoteIP":             "the same, of producers",
	"lastUpdateTimestamp":  "when something was stored or heard of",
	"lastTimestamp":        "when the message at an offset was stored",
	"minTimeStamp":         "when the first message of a queue was stored",
	"minTimeStampStr":      "the same in words",
	"maxTimeStamp":         "when the last message of a queue was stored",
	"maxTimeStampStr":      "the same in words",
	"consumeTimeStamp":     "when the next message to be consumed was stored",
	"consumeTimeStampStr":  "the same in words",
	"delayTime":            "how long ago that was",
	"consumeTps":           "a rate of the moments before",
	"subVersion":           "when a client subscribed; the replay's heartbeats say what the recorded ones said",
	"spentTimeMills":       "how long a client's listener took",
	"lastConsumeTimestamp": "a client's clock",
}

// figures are the requests whose answer is a table of figures of the machine and the moment: rates, sizes, times, and
// totals of all sessions. Names and kinds of the values must be the recorded ones.
var figures = map[int]string{
	28:  "the runtime table: since when the broker runs, what it has done in the last seconds, how full its disk is",
	315: "counts of the last minute, hour and day, which are taken at fixed seconds",
}

// tolerated are pairs of codes where both are right, and which one comes is a matter of a moment. The recorded one of
// the official server is the one that costs the client another round.
func tolerated(request *wire.Frame, recorded, live *wire.Frame) string {
	switch {
	case request.Code == 11 && among("25 27", itoa(recorded.Code)) && (live.Code == 0 || live.Code == 19 || live.Code == 20):
		// 27 is to the filter of a subscription what 25 is to the subscription.
		return "the pull overtook the heartbeat that it followed, which a server that keeps a connection's order does not let happen"
	case (request.Code == 351 || request.Code == 361) && recorded.Code == 3 && live.Code != 3:
		return "a 5.x client's request, which a 4.9 broker refuses to the client's loss"
	case request.Code == 105 && recorded.Code == 17 && live.Code == 0 && strings.HasPrefix(request.Ext["topic"], "%RETRY%"):
		return "the retry topic of a group that just came was registered sooner"
	case request.Code == 105 && recorded.Code == 17 && live.Code == 0 && strings.HasPrefix(request.Ext["topic"], "%DLQ%"):
		return "the dead-letter topic was registered sooner"
	case request.Code == 105 && recorded.Code == 0 && live.Code == 17 && request.Ext["topic"] == "TRANS_CHECK_MAX_TIME_TOPIC":
		return "the topic of transactions that nobody ends comes with the fifteenth check, minutes after the first"
	}
	return ""
}

// tooSoon says why an answer differs because a session is replayed without its pauses; "" when that is no reason.
func (r *replay) tooSoon(request, recorded, live *wire.Frame) string {
	switch {
	case !r.hurried:
	case request.Code == 11 && live.Code == 25 && among("0 19 20", itoa(recorded.Code)):
		return "the recorded pull was overtaken by the heartbeat that the client sent behind it"
	case request.Code == 315 && recorded.Code == 0 && live.Code == 1 && strings.HasSuffix(request.Ext["statsKey"], "@CID_RMQ_SYS_TRANS"):
		return "the broker has not looked for transactions to check since the first half message"
	case request.Code == 11 && request.Ext["topic"] == "OFFSET_MOVED_EVENT":
		return "a pull that came behind a delayed message, which was due a second after it was sent, is now beyond the end of the queue"
	case request.Code == 105 && recorded.Code == 0 && live.Code == 0 && request.Ext["topic"] == "TBW102":
		return "ADD_WRITE_PERM_OF_BROKER takes the inherit bit from a topic until the broker's next registration, half a minute later"
	}
	return ""
}

// settings are the requests whose answer is a properties file. Its names must be there; the values are this server's own.
var settings = map[int]string{26: "GET_BROKER_CONFIG", 319: "GET_NAMESRV_CONFIG"}

// compareSettings allows names that the recorded server did not have: rocketd's own limits.
func compareSettings(want, live []byte, diff func(string, any, any)) {
	names := func(text []byte) map[string]bool {
		out := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			name, _, _ := strings.Cut(line, "=")
			out[name] = true
		}
		return out
	}
	have := names(live)
	for _, name := range slices.Sorted(maps.Keys(names(want))) {
		if !have[name] {
			diff("setting "+name, "missing", "there")
		}
	}
}

var (
	sourceLine = regexp.MustCompile(`(\.java):\d+\)`)
	secretKey  = regexp.MustCompile(`(secretKey=)\S+`)
)

// plainRemark is a remark without what says nothing: the line of 4.9.7's source where rocketd names that of 4.9.8, and
// the refused secret, which rocketd does not repeat.
func plainRemark(s string) string {
	return secretKey.ReplaceAllString(sourceLine.ReplaceAllString(s, "$1)"), "$1…")
}

// compare notes in which facts the live answer differs from the recorded one.
func (r *replay) compare(s sentRequest, want, live *wire.Frame) {
	diff := func(what string, got, wanted any) {
		if r.hurried && strings.HasPrefix(what, "value of $.topicConfigTable.") && strings.HasSuffix(what, ".order") {
			return // a broker takes the order flags from the name server with its next registration, half a minute later
		}
		r.add(s.e, what, fmt.Sprintf("%v, recorded %v", got, wanted))
	}
	if want.Code != live.Code {
		if tolerated(s.request, want, live) == "" && r.tooSoon(s.request, want, live) == "" {
			diff("code", fmt.Sprintf("%d %.200q", live.Code, live.Remark), fmt.Sprintf("%d %.200q", want.Code, want.Remark))
		}
		return
	}
	if remark := r.local(want.Remark); plainRemark(remark) != plainRemark(live.Remark) {
		diff("remark", live.Remark, remark)
	}
	if live.Language != want.Language || live.Flag != want.Flag {
		diff("language or flag", live.Language+" "+itoa(live.Flag), want.Language+" "+itoa(want.Flag))
	}
	// A few of the official server's answers keep its default form; no client can rely on that (all decode by frame).
	if live.Form != want.Form && live.Form != s.request.Form {
		diff("form", live.Form, want.Form)
	}
	r.compareExt(s.request, want, live, diff)
	if r.tooSoon(s.request, want, live) != "" {
		return
	}
	r.asked = s.request.Code
	r.compareBody(want, live, diff)
}

// depends says why an ext field's value is not this session's alone, or a matter of a moment; "" when it is neither.
func (r *replay) depends(request, live *wire.Frame, name string) string {
	switch {
	case name == "queueOffset" && isDelayed(request):
		return "a delayed message waits in a queue that all topics share"
	case name == "queueOffset" && isHalf(request):
		return "a half message waits in a queue that all topics share, with those that are checked again and again"
	case name == "queueOffset" && request.Ext["b"]+request.Ext["topic"] == "RMQ_SYS_TRACE_TOPIC":
		return "all sessions send their traces to one topic"
	case name == "queueOffset" && request.Code == 325:
		return "all sessions' replies are kept in one topic of the cluster"
	case name == "version" && (settings[request.Code] != "" || request.Code == 52):
		return "a counter of all changes, and the time of the last"
	case r.hurried && request.Code == 30 && request.Ext["topic"] == "RMQ_SYS_TRANS_HALF_TOPIC":
		return "each check of a transaction that nobody ends adds a message to the queue"
	case r.hurried && among("wipeTopicCount addTopicCount", name):
		return "the topic of transactions that nobody ends is not there yet"
	case r.hurried && request.Code == 11 && among("maxOffset nextBeginOffset", name):
		return "without the recorded pauses more or fewer messages had come by then"
	case request.Code == 14 && name == "offset" && live.Ext[name] == r.commits[queueOfGroup(request)]:
		return "the query did not overtake the oneway commit that it followed"
	}
	return ""
}

func (r *replay) compareExt(request, want, live *wire.Frame, diff func(string, any, any)) {
	if want.Form == wire.JSON && live.Form == wire.JSON && (want.Ext == nil) != (live.Ext == nil) {
		diff("extFields there at all", live.Ext != nil, want.Ext != nil)
	}
	names := want.ExtNames()
	if got := live.ExtNames(); !slices.Equal(got, names) {
		diff("names of extFields", got, names)
	}
	for _, k := range names {
		if got, ok := live.Ext[k]; ok && volatileExt[k] == "" && got != r.local(want.Ext[k]) && r.depends(request, live, k) == "" {
			diff("ext field "+k, got, want.Ext[k])
		}
	}
}

func (r *replay) compareBody(want, live *wire.Frame, diff func(string, any, any)) {
	if (len(want.Body) == 0) != (len(live.Body) == 0) {
		diff("length of the body", len(live.Body), len(want.Body))
		return
	}
	if len(want.Body) == 0 {
		return
	}
	if ms, err := wire.Messages(want.Body); err == nil {
		r.compareMessages(ms, live.Body, diff)
		return
	}
	if settings[r.asked] != "" {
		compareSettings(want.Body, live.Body, diff)
		return
	}
	if want.Body[0] != '{' && want.Body[0] != '[' {
		if !bytes.Equal(want.Body, live.Body) {
			diff("body", len(live.Body), len(want.Body))
		}
		return
	}
	text := []byte(r.local(string(want.Body)))
	if json.Valid(text) != json.Valid(live.Body) {
		diff("standard JSON", json.Valid(live.Body), json.Valid(text))
	}
	a, err := wire.ParseJSON(text)
	if err != nil {
		diff("recorded JSON", err, "")
		return
	}
	b, err := wire.ParseJSON(live.Body)
	if err != nil {
		diff("JSON", err, "")
		return
	}
	if figures[r.asked] != "" {
		a, b = kinds(a), kinds(b)
	}
	if r.asked == 208 {
		forget(b, "pullOffset") // what the tools of 5.x want to have, and a 4.9 broker does not tell
	}
	compareJSON(a, b, "$", diff)
}

// forget takes a member out of all objects of a value.
func forget(v any, member string) {
	if m, ok := v.(map[string]any); ok {
		delete(m, member)
		for _, x := range m {
			forget(x, member)
		}
	}
}

// kinds replaces the values of a table by what they are, and paths in its names by a word.
func kinds(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if i := strings.IndexByte(k, '/'); i > 0 {
				k = k[:i] + "(path)"
			}
			out[k] = kinds(x)
		}
		return out
	default:
		return fmt.Sprintf("%T", v)
	}
}

// without empties the members of a value that say nothing, so that lists can be compared.
func without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if volatileJSON[k] != "" {
				x = "(volatile)"
			}
			out[k] = without(x)
		}
		return out
	case []any:
		return sortedTexts(v)
	}
	return v
}

// compareJSON compares by members. Lists are compared as sets: in Java they come out of hash tables.
func compareJSON(want, live any, path string, diff func(string, any, any)) {
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			break
		}
		if a, b := slices.Sorted(maps.Keys(w)), slices.Sorted(maps.Keys(l)); !slices.Equal(a, b) {
			diff("members of "+path, b, a)
		}
		for k, v := range w {
			other, ok := l[k]
			switch {
			case !ok:
			case volatileJSON[k] == "":
				compareJSON(v, other, path+"."+k, diff)
			case strings.HasSuffix(k, "Table"):
				compareTables(v, other, path+"."+k, diff)
			default:
				compareJSON(shape(v), shape(other), path+"."+k, diff)
			}
		}
		return
	case []any:
		l, ok := live.([]any)
		if !ok {
			break
		}
		if a, b := sortedTexts(w), sortedTexts(l); !slices.Equal(a, b) {
			diff("list "+path, b, a)
		}
		return
	}
	if want != live {
		diff("value of "+path, live, want)
	}
}

// shape is of a value what it is, of an object its members' too, of a list nothing more.
func shape(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprintf("%T", v)
	}
	out := map[string]any{}
	for k, x := range m {
		out[k] = shape(x)
	}
	return out
}

// compareTables compares the entries that two tables of different sessions have in common; there must be one.
func compareTables(want, live any, path string, diff func(string, any, any)) {
	w, ok := want.(map[string]any)
	l, also := live.(map[string]any)
	if !ok || !also {
		diff("value of "+path, live, want)
		return
	}
	common := 0
	for k, v := range w {
		if other, ok := l[k]; ok {
			common++
			compareJSON(v, other, path+"."+k, diff)
		}
	}
	if common == 0 && len(w) > 0 {
		diff("entries of "+path, slices.Sorted(maps.Keys(l)), slices.Sorted(maps.Keys(w)))
	}
}

func sortedTexts(list []any) []string {
	var out []string
	for _, v := range list {
		text, err := json.Marshal(without(v))
		if err != nil {
			panic(err) // it came from JSON
		}
		out = append(out, string(text))
	}
	slices.Sort(out)
	return out
}

// compareMessages compares stored messages in all that the client's request and the queue decide. Not compared: log
// offset, store time, the ports of the hosts (each server's own), and so the record's size.
func (r *replay) compareMessages(want []*wire.Message, body []byte, diff func(string, any, any)) {
	live, err := wire.Messages(body)
	if err != nil {
		diff("messages", err, len(want))
		return
	}
	if r.hurried { // as many as there were by then
		n := min(len(want), len(live))
		want, live = want[:n], live[:n]
	}
	if len(want) != len(live) {
		diff("number of messages", len(live), len(want))
		return
	}
	for i, w := range want {
		l := live[i]
		describe := func(m *wire.Message, topic string) string {
			return fmt.Sprintf("%s queue %d offset %d flag %d sysFlag %#x reconsumeTimes %d of a half message %v crc %08x", topic, m.QueueId, m.QueueOffset,
				m.Flag, m.SysFlag, m.ReconsumeTimes, m.PreparedTransactionOffset != 0, m.BodyCRC)
		}
		if a, b := describe(w, r.local(w.Topic)), describe(l, l.Topic); a != b {
			diff("message", b, a)
		}
		if !bytes.Equal(w.Body, l.Body) {
			diff("message body", fmt.Sprintf("%.80q", l.Body), fmt.Sprintf("%.80q", w.Body))
		}
		if w.BornTimestamp != l.BornTimestamp {
			diff("bornTimestamp", l.BornTimestamp, w.BornTimestamp)
		}
		if l.BornHost.Addr() != w.BornHost.Addr() {
			diff("bornHost", l.BornHost, w.BornHost)
		}
		properties := map[string]string{}
		for k, v := range w.Properties {
			if now := r.ids[v]; now != "" {
				v = now
			}
			properties[k] = r.local(v)
		}
		if !maps.Equal(properties, l.Properties) {
			diff("message properties", l.Properties, properties)
		}
	}
}
