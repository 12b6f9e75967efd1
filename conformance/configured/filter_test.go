//go:build conformance

package configured

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"rocketd/conformance/wire"
)

// kept is what consumerFilter.json says of a group.
type kept struct {
	Expression string
	DeadTime   int64
}

// keptFilters reads consumerFilter.json, which the broker writes every ten seconds or when it changes; group to filter.
func keptFilters(t *testing.T, topic string) map[string]kept {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(server.Brokers[0].StoreDir, "config", "consumerFilter.json"))
	if err != nil {
		return nil // not yet
	}
	var file struct {
		FilterDataByTopic map[string]struct{ GroupFilterData map[string]kept }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil // being written
	}
	return file.FilterDataByTopic[topic].GroupFilterData
}

// subscribe sends a heartbeat of a member that subscribes by an expression.
func (s *session) subscribe(group, topic, expression string, version int) {
	s.t.Helper()
	s.Done(wire.Request(34).WithBody(fmt.Appendf(nil, `{"clientID":"c@%s","producerDataSet":[],"consumerDataSet":[{"groupName":%q,"consumeType":"CONSUME_PASSIVELY",`+
		`"messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","unitMode":false,"subscriptionDataSet":[{"classFilterMode":false,"codeSet":[],`+
		`"tagsSet":[],"expressionType":"SQL92","subString":%q,"subVersion":%d,"topic":%q}]}]}`, group, group, expression, version, topic)))
}

// The expression of a group without members is forgotten when it has been dead for filterDataCleanTimeSpan; that of a group with
// members stays.
func TestDeadFiltersExpire(t *testing.T) {
	t.Parallel()
	leaving, staying := connect(t), connect(t)
	topic := staying.topic("Expiring")
	leaving.subscribe("Leaving", topic, "a = 1", 1)
	staying.subscribe("Staying", topic, "a = 2", 1)
	until(t, "both are kept", func() bool {
		all := keptFilters(t, topic)
		return all["Leaving"] == kept{"a = 1", 0} && all["Staying"] == kept{"a = 2", 0}
	})
	leaving.Conn.Close()
	until(t, "only the expression of who has stayed is kept", func() bool {
		all := keptFilters(t, topic)
		return len(all) == 1 && all["Staying"] == kept{"a = 2", 0}
	})
	// Who comes back is there at once, with the version that it had.
	again := connect(t)
	again.subscribe("Leaving", topic, "a = 3", 1)
	again.Done(message(topic, "two", "a", "2"))
	again.Done(message(topic, "three", "a", "3"))
	again.stored(topic, 2)
	a := again.Done(pull("Leaving", topic, 0).Set("sysFlag", "0").Set("subVersion", "1"))
	if ms, err := wire.Messages(a.Body); err != nil || len(ms) != 1 || string(ms[0].Body) != "three" {
		t.Errorf("it takes %+v, %v", ms, err)
	}
}
