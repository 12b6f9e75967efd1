package broker

import (
	"fmt"
	"strings"
	"testing"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting/remotingtest"
)

// TestAnswersAreBounded: what one request asks of very many queues, or of many large messages, fits a frame or is refused.
func TestAnswersAreBounded(t *testing.T) {
	p := startPathBroker(t, nil)
	made := p.ask(protocol.UpdateAndCreateTopic, &header.CreateTopicRequest{Topic: "Wide", ReadQueueNums: 60_000, WriteQueueNums: 60_000, Perm: 6, TopicFilterType: "SINGLE_TAG"}, nil)
	check(t, "topic", made, protocol.Success, unsetRemark)
	for i := range 3 {
		group := fmt.Sprintf("G%d", i)
		p.groups.FindOrCreate(group)
		check(t, group, p.ask(protocol.UpdateConsumerOffset, &header.UpdateConsumerOffsetRequest{ConsumerGroup: group, Topic: "Wide", CommitOffset: 1}, nil), protocol.Success, "", "{}")
		a := p.ask(protocol.GetBrokerConsumeStats, &header.GetConsumeStatsInBroker{}, nil)
		if i < 2 { // 120,000 queues
			if a.Code != 0 || len(a.Body) > protocol.MaxFrame-1<<10 {
				t.Errorf("%d groups: code %d, %q, %d bytes", i+1, a.Code, a.Remark, len(a.Body))
			}
			continue
		}
		check(t, "180000 queues", a, protocol.SystemError, "the groups stand in more than 150000 queues*")
	}

	check(t, "topic", p.ask(protocol.UpdateAndCreateTopic, &header.CreateTopicRequest{Topic: "Large", ReadQueueNums: 16, WriteQueueNums: 16, Perm: 6, TopicFilterType: "SINGLE_TAG"}, nil), protocol.Success, unsetRemark)
	large := strings.Repeat("x", 1<<20)
	for q := range int32(16) {
		p.send("Large", q, "", large)
		remotingtest.Eventually(t, "the message is in its queue", func() bool { return p.store.MaxOffset("Large", q) == 1 })
	}
	a := p.ask(protocol.PeekMessage, &header.PeekMessageRequest{ConsumerGroup: "G0", Topic: "Large", QueueId: -1, MaxMsgNums: 32}, nil)
	if a.Code != 0 || len(p.messages(a)) != 8 { // the eighth is beyond 8 MiB with its record's own bytes
		t.Errorf("code %d, %q, %d bytes", a.Code, a.Remark, len(a.Body))
	}
}
