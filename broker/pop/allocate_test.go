package pop

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"rocketd/compat"
	"rocketd/protocol/body"
	"rocketd/store/vfs"
)

func queuesOf(n int) (list []body.MessageQueue) {
	for i := range int32(n) {
		list = append(list, body.MessageQueue{Topic: "T", BrokerName: "b", QueueId: i})
	}
	return list
}

func clientsOf(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("c", i))
	}
	return list
}

// The expected shares are calculated by hand from the rules of AllocateMessageQueueAveragely and …ByCircle.
func TestAllocate(t *testing.T) {
	for _, c := range []struct {
		strategy        string
		queues, clients int
		client          string
		want            string
	}{
		{"AVG", 4, 1, "c0", "0 1 2 3"},
		{"AVG", 8, 3, "c0", "0 1 2"}, {"AVG", 8, 3, "c1", "3 4 5"}, {"AVG", 8, 3, "c2", "6 7"},
		{"AVG", 2, 3, "c1", "1"}, {"AVG", 2, 3, "c2", ""},
		{"AVG_BY_CIRCLE", 8, 3, "c1", "1 4 7"}, {"AVG_BY_CIRCLE", 2, 3, "c2", ""},
		{"AVG", 4, 2, "stranger", ""}, {"AVG", 4, 2, "", "none"}, {"AVG", 0, 2, "c0", "none"}, {"CONSISTENT_HASH", 4, 2, "c0", "none"},
	} {
		got, ok := Allocate(c.strategy, c.client, queuesOf(c.queues), clientsOf(c.clients))
		if text := ids(got, ok); text != c.want {
			t.Errorf("%+v: %s", c, text)
		}
	}
}

// By hand from QueryAssignmentProcessor#allocate4Pop.
func TestAllocatePop(t *testing.T) {
	for _, c := range []struct {
		queues, clients int
		client          string
		share           int32
		want            string
	}{
		{2, 3, "c0", 0, "-1 -1"}, {4, 3, "c1", -1, "-1 -1 -1 -1"}, {4, 3, "c1", 2, "-1 -1 -1 -1"}, {4, 1, "c0", 1, "-1 -1 -1 -1"},
		{4, 4, "c1", 1, "1 2"}, {4, 4, "c3", 2, "3 0 1"}, {4, 4, "stranger", 1, ""},
		{2, 5, "c3", 1, "1"}, {2, 5, "stranger", 1, ""}, {2, 5, "", 1, "none"},
	} {
		got, ok := AllocatePop("AVG", c.client, queuesOf(c.queues), clientsOf(c.clients), c.share)
		if text := ids(got, ok); text != c.want {
			t.Errorf("%+v: %s", c, text)
		}
	}
	if _, ok := AllocatePop("NONE", "c0", queuesOf(1), clientsOf(1), 0); ok {
		t.Error("a strategy that there is not")
	}
}

func ids(list []body.MessageQueue, ok bool) string {
	if !ok {
		return "none"
	}
	var s []string
	for _, q := range list {
		s = append(s, fmt.Sprint(q.QueueId))
	}
	return strings.Join(s, " ")
}

func TestModes(t *testing.T) {
	files := vfs.Files{FS: vfs.NewMem(time.Now)}
	if err := files.MkdirAll("config"); err != nil {
		t.Fatal(err)
	}
	open := func() *Modes {
		m, err := OpenModes("config/messageRequestMode.json", files, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := open()
	done := make(chan error, 1)
	m.Set(&body.SetMessageRequestModeRequestBody{Topic: "T", ConsumerGroup: "G", Mode: body.ModePop, PopShareQueueNum: 3}, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	// The official form: {messageRequestModeMap:{topic:{group:{consumerGroup,mode,popShareQueueNum,topic}}}}.
	text, err := files.ReadFile("config/messageRequestMode.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.NewReplacer("\n", "", "\t", "").Replace(string(text)); got !=
		`{"messageRequestModeMap":{"T":{"G":{"consumerGroup":"G","mode":"POP","popShareQueueNum":3,"topic":"T"}}}}` {
		t.Errorf("file: %s", got)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = open()
	defer m.Close()
	if mode := m.Find("T", "G"); mode == nil || mode.Mode != body.ModePop || mode.PopShareQueueNum != 3 {
		t.Errorf("read again: %+v", mode)
	}
	if m.Find("T", "H") != nil || m.Find("U", "G") != nil {
		t.Error("a mode that nobody has set")
	}
	var _ compat.FileSystem = files
}
