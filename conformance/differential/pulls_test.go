//go:build conformance

package differential

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// The results of a pull and the offset to go on from, for every place of the asked offset.
func TestPullResults(t *testing.T) {
	t.Parallel()
	topic := newTopicWithMessage(t, "PullResults").Topic
	for range 3 {
		expect(t, broker(), sendV2(topic).Set("i", wire.Properties("TAGS", "TagA")), sent)
	}
	expectStored(t, topic, 1, 4) // and a fifth is sent, without a tag like the first
	eitherForm(t, func(t *testing.T, form byte) {
		for _, c := range []struct {
			name            string
			change          []string
			code            int
			remark          string
			next, min, most string
			messages        int
		}{
			{"all", []string{"maxMsgNums", "32"}, 0, "FOUND", "5", "0", "5", 5},
			{"some", []string{"maxMsgNums", "2", "queueOffset", "1"}, 0, "FOUND", "3", "0", "5", 2},
			{"a great many", []string{"maxMsgNums", "1000000"}, 0, "FOUND", "5", "0", "5", 5},
			{"no number of messages is one", []string{"maxMsgNums", "0"}, 0, "FOUND", "1", "0", "5", 1},
			{"tag", []string{"maxMsgNums", "32", "subscription", "TagA"}, 0, "FOUND", "5", "0", "5", 3},
			{"tags", []string{"maxMsgNums", "2", "subscription", "TagB || TagA"}, 0, "FOUND", "3", "0", "5", 2},
			{"other tag", []string{"subscription", "TagB"}, 20, "NO_MATCHED_MESSAGE", "5", "0", "5", 0},
			{"at the end", []string{"queueOffset", "5"}, 19, "OFFSET_OVERFLOW_ONE", "5", "0", "5", 0},
			{"beyond the end", []string{"queueOffset", "6"}, 21, "OFFSET_OVERFLOW_BADLY", "5", "0", "5", 0},
			{"far beyond", []string{"queueOffset", "9223372036854775807"}, 21, "OFFSET_OVERFLOW_BADLY", "5", "0", "5", 0},
			{"before the start", []string{"queueOffset", "-1"}, 21, "OFFSET_TOO_SMALL", "0", "0", "5", 0},
			{"empty queue", []string{"queueId", "1"}, 19, "NO_MESSAGE_IN_QUEUE", "0", "0", "0", 0},
			{"empty queue, later", []string{"queueId", "1", "queueOffset", "9"}, 21, "NO_MESSAGE_IN_QUEUE", "0", "0", "0", 0},
		} {
			f := pull(topic)
			for i := 0; i < len(c.change); i += 2 {
				f.Set(c.change[i], c.change[i+1])
			}
			f.Form = form
			got := expect(t, broker(), f, answer{c.code, c.remark, pullFields})
			if got == nil {
				continue
			}
			if e := got.Ext; e["nextBeginOffset"] != c.next || e["minOffset"] != c.min || e["maxOffset"] != c.most || e["suggestWhichBrokerId"] != "0" {
				t.Errorf("%s: %v, want next %s, min %s, max %s", c.name, e, c.next, c.min, c.most)
			}
			if ms, err := wire.Messages(got.Body); err != nil || len(ms) != c.messages {
				t.Errorf("%s: %d messages, %v; want %d", c.name, len(ms), err, c.messages)
			}
			if got.Form != form {
				t.Errorf("%s: asked in form %d, answered in form %d", c.name, form, got.Form)
			}
		}
	})
	expect(t, broker(), pull(topic).Set("maxMsgNums", "-1"), failure)
	expect(t, broker(), pull(topic).Set("sysFlag", "0"), answer{24, "the consumer's group info not exist" + seeFAQ, "{}"})
}

// A held pull is answered by the message's arrival, or when its time is over. That it is the arrival two wake-ups in a row show: the scan, which
// every 5 s answers those whose message it finds, can't make both in less than that. On a busy machine it may take more than two.
func TestHeldPulls(t *testing.T) {
	t.Parallel()
	topic := newTopicWithMessage(t, "HeldPulls").Topic
	c := dial(t, broker())
	over, err := c.Send(longPoll(topic, 1, time.Second).Set("queueId", "1").Set("queueOffset", "0"))
	if err != nil {
		t.Fatal(err)
	}
	byTag, err := c.Send(longPoll(topic, 1, patience).Set("subscription", "Wanted"))
	if err != nil {
		t.Fatal(err)
	}
	woken, err := c.Send(longPoll(topic, 1, patience))
	if err != nil {
		t.Fatal(err)
	}
	if f, err := woken.Wait(silence); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("not held: %+v, %v", f, err)
	}
	before := time.Now()
	expect(t, broker(), sendV2(topic).Set("i", wire.Properties("TAGS", "Wanted")), sent)
	for name, p := range map[string]*wire.Pending{"woken": woken, "byTag": byTag} {
		f, err := p.Wait(patience)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if wrong := found.matches(f); wrong != "" || f.Ext["nextBeginOffset"] != "2" {
			t.Errorf("%s: %s %v", name, wrong, f.Ext)
		}
	}
	for next, limit := int64(2), before.Add(2*patience); ; next++ {
		p, err := c.Send(longPoll(topic, next, patience))
		if err != nil {
			t.Fatal(err)
		}
		if f, err := p.Wait(silence); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("not held: %+v, %v", f, err)
		}
		now := time.Now()
		expect(t, broker(), sendV2(topic), sent)
		if f, err := p.Wait(patience); err != nil || found.matches(f) != "" {
			t.Fatalf("woken again: %v, %v", f, err)
		}
		if time.Since(before) < 4500*time.Millisecond {
			break
		}
		if now.After(limit) {
			t.Fatal("never were two woken in a row in less than 4.5 s: by the scan, not by the message")
		}
		before = now
	}
	f, err := over.Wait(patience)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := (answer{19, "NO_MESSAGE_IN_QUEUE", pullFields}).matches(f); wrong != "" || f.Ext["nextBeginOffset"] != "0" {
		t.Errorf("time over: %s %v", wrong, f.Ext)
	}
}

// Offsets committed by themselves and inside a pull. Those without a group or a topic do no harm.
func TestOffsetCommits(t *testing.T) {
	t.Parallel()
	topic := newTopicWithMessage(t, "Commits").Topic
	query := func(group string) string {
		t.Helper()
		f := wire.Request(14, "topic", topic, "queueId", "0")
		if group != "" {
			f.Set("consumerGroup", group)
		}
		if got := expect(t, broker(), f, answer{ext: "offset"}); got != nil {
			return got.Ext["offset"]
		}
		return ""
	}
	commit := func(pairs ...string) {
		t.Helper()
		expect(t, broker(), wire.Request(15, pairs...), answer{ext: "{}"})
	}
	commit("topic", topic, "queueId", "0", "consumerGroup", "G-commits", "commitOffset", "7")
	if got := query("G-commits"); got != "7" {
		t.Errorf("committed 7, stored %s", got)
	}
	// Backwards is allowed: the reset of an offset is such a commit.
	commit("topic", topic, "queueId", "0", "consumerGroup", "G-commits", "commitOffset", "3")
	if got := query("G-commits"); got != "3" {
		t.Errorf("committed 3, stored %s", got)
	}
	expect(t, broker(), pull(topic).Set("consumerGroup", "G-commits").Set("sysFlag", "5").Set("commitOffset", "5"), found)
	if got := query("G-commits"); got != "5" {
		t.Errorf("committed 5 inside a pull, stored %s", got)
	}
	expect(t, broker(), pull(topic).Set("consumerGroup", "G-commits").Set("sysFlag", "4").Set("commitOffset", "6"), found)
	if got := query("G-commits"); got != "5" {
		t.Errorf("a pull without the commit bit stored %s", got)
	}

	commit("topic", topic, "queueId", "0", "commitOffset", "77")
	commit("queueId", "0", "consumerGroup", "G-commits-no-topic", "commitOffset", "77")
	commit("queueId", "0", "commitOffset", "77")
	if got := query(""); server.Kind == target.Rocketd && got != "0" { // the official server keeps it, under "null"
		t.Errorf("a commit without a group was stored: %s", got)
	}
}

// The name server writes routes in two dialects, by the version of who asks.
func TestRouteDialects(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "Dialects", 2)
	waitRouted(t, topic)
	eitherForm(t, func(t *testing.T, form byte) {
		for _, c := range []struct {
			version int
			pairs   []string
			quoted  bool
		}{{0, nil, false}, {317, nil, false}, {400, nil, false}, {401, nil, true}, {409, nil, true}, {479, nil, true},
			{317, []string{"acceptStandardJsonOnly", "true"}, true}} {
			f := wire.Request(105, append([]string{"topic", topic}, c.pairs...)...)
			f.Version, f.Form = c.version, form
			got := expect(t, namesrv(), f, answer{})
			if got == nil {
				continue
			}
			body := string(got.Body)
			want := `"brokerAddrs":{0:"` + broker() + `"}`
			if c.quoted {
				want = strings.Replace(want, "0", `"0"`, 1)
			}
			if !strings.Contains(body, want) || json.Valid(got.Body) != c.quoted {
				t.Errorf("version %d, %v: %s, want it to have %s", c.version, c.pairs, body, want)
			}
		}
	})
}

// Writing and reading permissions of a topic, and a group that may not consume.
func TestPermissions(t *testing.T) {
	t.Parallel()
	topic := newTopicWithMessage(t, "Permissions").Topic
	perm := func(perm int) { // a topic that is created again takes its new settings
		expect(t, broker(), createTopic(topic, 2).Set("perm", strconv.Itoa(perm)), created)
	}
	perm(2)
	expect(t, broker(), pull(topic), answer{16, "the topic[Permissions] pulling message is forbidden", "{}"})
	perm(4)
	expect(t, broker(), sendV2(topic), sent) // not looked at: clients honour the route
	expect(t, broker(), pull(topic), found)
	expect(t, broker(), wire.Request(200).WithBody([]byte(`{"groupName":"G-may-not","consumeEnable":false,"consumeFromMinEnable":true,`+
		`"consumeBroadcastEnable":true,"retryQueueNums":1,"retryMaxTimes":16,"brokerId":0,"whichBrokerWhenConsumeSlowly":1,`+
		`"notifyConsumerIdsChangedEnable":true}`)), answer{})
	expect(t, broker(), pull(topic).Set("consumerGroup", "G-may-not"),
		answer{16, "subscription group no permission, G-may-not", "{}"})
}
