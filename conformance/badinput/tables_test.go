//go:build conformance

package badinput

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// tables is all that the servers keep, as lines "table name" and their content.
type tables map[string]string

// readTables asks both servers for everything that administrators can see.
func readTables(t *testing.T, c *target.Target) tables {
	t.Helper()
	all := tables{}
	broker, namesrv := c.Brokers[0].Addr, c.NameServers[0].Addr
	all.addMembers(t, "topic", call(t, broker, wire.Request(21)), "topicConfigTable")
	all.addMembers(t, "group", call(t, broker, wire.Request(201)), "subscriptionGroupTable")
	all.addMembers(t, "offset", call(t, broker, wire.Request(43)), "offsetTable")
	all.addMembers(t, "broker of the name server", call(t, namesrv, wire.Request(106)), "brokerAddrTable")
	all.addMembers(t, "cluster of the name server", call(t, namesrv, wire.Request(106)), "clusterAddrTable")
	all.addMembers(t, "order", call(t, namesrv, wire.Request(219, "namespace", "ORDER_TOPIC_CONFIG")), "table")
	all.addLines("configuration of the broker", call(t, broker, wire.Request(26)))
	all.addLines("configuration of the name server", call(t, namesrv, wire.Request(319)))
	var routed struct{ TopicList []string }
	if err := json.Unmarshal(call(t, namesrv, wire.Request(206)), &routed); err != nil {
		t.Fatal(err)
	}
	for _, topic := range routed.TopicList {
		all["topic of the name server "+topic] = "routed"
	}
	return all
}

func (all tables) addMembers(t *testing.T, table string, body []byte, member string) {
	t.Helper()
	v, err := wire.ParseJSON(body)
	if err != nil {
		t.Fatalf("%s: %v", table, err)
	}
	members, _ := v.(map[string]any)[member].(map[string]any)
	for name, content := range members {
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		all[table+" "+name] = string(text)
	}
}

func (all tables) addLines(table string, properties []byte) {
	for _, line := range strings.Split(string(properties), "\n") {
		if key, value, ok := strings.Cut(line, "="); ok {
			all[table+" "+key] = value
		}
	}
}

// changed lists, sorted, what has come, gone or changed since before.
func (all tables) changed(before tables) []string {
	var out []string
	for name, content := range all {
		if was, ok := before[name]; !ok {
			out = append(out, fmt.Sprintf("new: %.100q", name))
		} else if was != content {
			out = append(out, fmt.Sprintf("changed: %.100q", name))
		}
	}
	for name := range before {
		if _, ok := all[name]; !ok {
			out = append(out, fmt.Sprintf("gone: %.100q", name))
		}
	}
	return slices.Sorted(slices.Values(out))
}

// without lists what is in one list and not in another.
func without(list, other []string) []string {
	have := map[string]bool{}
	for _, s := range other {
		have[s] = true
	}
	left := map[string]bool{}
	for _, s := range list {
		if !have[s] {
			left[s] = true
		}
	}
	return slices.Sorted(maps.Keys(left))
}

func call(t *testing.T, addr string, f *wire.Frame) []byte {
	t.Helper()
	got, err := wire.CallOnce(addr, f, patience)
	if err != nil {
		t.Fatalf("request %d: %v", f.Code, err)
	}
	if got.Code != 0 && got.Code != 22 {
		t.Fatalf("request %d: %d %s", f.Code, got.Code, got.Remark)
	}
	if len(got.Body) == 0 {
		return []byte("{}")
	}
	return got.Body
}
