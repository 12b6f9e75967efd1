package pop

import (
	"strings"
	"testing"

	"rocketd/protocol/message"
)

// The texts are those that the broker of 5.3.3 answered when they were recorded, in the form of its ExtraInfoUtil.
func TestHandle(t *testing.T) {
	h, err := ParseHandle("3 1795977912869 8000 5 1 pop-a 0 4")
	if want := (Handle{3, 1795977912869, 8000, 5}); err != nil || h != want {
		t.Errorf("%+v, %v", h, err)
	}
	if got := string(AppendHandle(nil, h, "%RETRY%PG1_PT", "pop-a", 0, 4)); got != "3 1795977912869 8000 5 1 pop-a 0 4" {
		t.Error(got)
	}
	if h, err = ParseHandle("3 1795977912869 8000 999 0 pop-a 0"); err != nil || h.ReviveQid != OrderRevive {
		t.Errorf("seven fields: %+v, %v", h, err)
	}
	for _, bad := range []string{"", "1", "1 2", "1 2 3 4", "a 2 3 4 0", "1 2 3 99999999999 0 b 1", "9223372036854775808 1 1 1 0"} {
		if _, err := ParseHandle(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestOffsetStrings(t *testing.T) {
	starts := AppendStartOffset(AppendStartOffset(nil, "%RETRY%PG1_PT", 0, 0), "PT", 2, 7)
	if got := string(starts); got != "1 0 0;0 2 7" {
		t.Error(got)
	}
	offsets := AppendMsgOffsets(AppendMsgOffsets(nil, "%RETRY%PG1_PT", 0, []int64{0, 1, 2}), "PT", 2, []int64{7})
	if got := string(offsets); got != "1 0 0,1,2;0 2 7" {
		t.Error(got)
	}
	for _, c := range [][3]string{{"T", "0", "T"}, {"T", "1", "%RETRY%G_T"}, {"T", "2", "%RETRY%G+T"}, {"T", "", "T"}} {
		if got := RealTopic(c[0], "G", c[1]); got != c[2] {
			t.Errorf("%v: %s", c, got)
		}
	}
	if TopicFlag("%RETRY%G+T") != '2' {
		t.Error("flag of a V2 retry topic")
	}
}

func BenchmarkPopAndAck(b *testing.B) {
	bed := newBed(b, newStore())
	bed.open(0)
	defer bed.Close()
	q := bed.queue(queueT)
	offsets := make([]int64, maxBatch)
	run := make([]Ack, maxBatch)
	b.ReportAllocs()
	for i := range b.N {
		start := int64(i * maxBatch)
		for k := range offsets {
			offsets[k] = start + int64(k)
			run[k] = Ack{queueT, start, start, offsets[k]}
		}
		if err := bed.Popped(q, start, start, 60_000, offsets, start+maxBatch); err != nil {
			b.Fatal(err)
		}
		if err := bed.Acked(run); err != nil {
			b.Fatal(err)
		}
	}
}

// Where no topic can have the official name of a retry topic, it has another, found by what clients know.
func TestRetryTopicOfLongNames(t *testing.T) {
	long := strings.Repeat("T", 100)
	for _, c := range []struct {
		group, topic string
		own          bool
	}{{"G", "T", false}, {strings.Repeat("G", 18), long, false}, {strings.Repeat("G", 19) + "x", long, true}, {"my.group", "T", true}} {
		official := "%RETRY%" + c.group + "_" + c.topic
		got := RetryTopic(c.group, c.topic)
		if got != official != c.own || message.ValidateTopic(got) != nil || TopicFlag(got) != '1' {
			t.Errorf("%s is %s", official, got)
		}
		if OwnTopic(official, c.group) != got || OwnTopic(got, c.group) != got || OwnTopic(c.topic, c.group) != c.topic || RealTopic(c.topic, c.group, "1") != got {
			t.Errorf("%s is not found", official)
		}
		if from := Origin(Key{Topic: got, Group: c.group}, "RETRY_TOPIC\x01"+c.topic); from != c.topic {
			t.Errorf("%s is of %s", got, from)
		}
	}
	if from := Origin(Key{Topic: "T", Group: "G"}, "RETRY_TOPIC\x01other"); from != "T" {
		t.Errorf("T is of %s", from)
	}
}
