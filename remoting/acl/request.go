package acl

import (
	"strings"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/message"
)

// AdminOnly tells whether a request needs the admin role. The first line is the official list; with it alone every account
// could make itself an administrator by 50 (compat).
func AdminOnly(code protocol.RequestCode) bool {
	switch code {
	case protocol.UpdateAndCreateTopic, protocol.UpdateBrokerConfig, protocol.DeleteTopicInBroker, protocol.UpdateAndCreateSubscriptionGroup, protocol.DeleteSubscriptionGroup,
		protocol.UpdateAndCreateAclConfig, protocol.DeleteAclConfig, protocol.UpdateGlobalWhiteAddrsConfig, protocol.GetBrokerClusterAclConfig,
		protocol.InvokeBrokerToResetOffset, protocol.CloneGroupOffset, protocol.ConsumeMessageDirectly, protocol.ResumeCheckHalfMessage,
		protocol.CleanExpiredConsumeQueue, protocol.CleanUnusedTopic, protocol.DeleteExpiredCommitLog, protocol.SetMessageRequestMode, protocol.PopRollback:
		return true
	}
	return false
}

// Fields that name what a request is about.
const (
	fieldTopic    = "topic"
	fieldGroup    = "group"
	fieldConsumer = "consumerGroup"
	letterTopic   = "b" // of SEND_MESSAGE_V2
)

// maxResources is what all requests but those with lists in their bodies need at most.
const maxResources = 3

// needs appends what cmd wants to do with which topics and groups: PlainAccessValidator#parse of 4.9.8 with these
// differences (compat). A send to a retry topic needs the group that owns it, not the one that the request names. A
// batch is a send, and so is a reply to another topic than a cluster's topic of replies. A lock needs its group. Of a body that can't be read nothing follows: its handler fails over it too.
func needs(cmd *protocol.Command, into []Resource) []Resource {
	topic := func(key string, need Permission) {
		if name, ok := cmd.Field(key); ok {
			into = append(into, TopicResource(name, need))
		}
	}
	group := func(key string) {
		if name, ok := cmd.Field(key); ok {
			into = append(into, Resource{Name: name, Group: true, Need: Sub})
		}
	}
	switch protocol.RequestCode(cmd.Code) {
	case protocol.SendMessage, protocol.SendMessageV2, protocol.SendBatchMessage:
		// The header takes either spelling for each of the codes. One pass, for this is what nearly every request is.
		for i := range cmd.Fields {
			switch f := &cmd.Fields[i]; f.Key {
			case letterTopic, fieldTopic:
				into = append(into, TopicResource(f.Value, Pub))
			}
		}
	case protocol.SendReplyMessage, protocol.SendReplyMessageV2:
		// Stock clients send replies to CLUSTER_REPLY_TOPIC, with the rights of who asked for none; the broker stores them where they say.
		for i := range cmd.Fields {
			if f := &cmd.Fields[i]; (f.Key == letterTopic || f.Key == fieldTopic) && !message.IsReplyTopic(f.Value) {
				into = append(into, TopicResource(f.Value, Pub))
			}
		}
	case protocol.RecallMessage:
		topic(fieldTopic, Pub)
	case protocol.ConsumerSendMsgBack:
		group(fieldGroup)
	case protocol.PullMessage, protocol.LitePullMessage, protocol.UpdateConsumerOffset,
		protocol.PopMessage, protocol.PeekMessage, protocol.Notification, protocol.PollingInfo:
		topic(fieldTopic, Sub)
		group(fieldConsumer)
	case protocol.AckMessage, protocol.ChangeMessageInvisibleTime:
		group(fieldConsumer)
		name, _ := cmd.Field(fieldTopic)
		consumer, _ := cmd.Field(fieldConsumer)
		// A message that has come again is acknowledged in the retry topic of group and topic, which is no group's of its own.
		if origin, ok := strings.CutPrefix(name, retryPrefix+consumer+"_"); ok {
			name = origin
		}
		into = append(into, TopicResource(name, Sub))
	case protocol.QueryMessage:
		topic(fieldTopic, Sub)
	case protocol.UnregisterClient, protocol.GetConsumerListByGroup:
		group(fieldConsumer)
	case protocol.HeartBeat:
		into = heartbeatNeeds(cmd.Body, into)
	case protocol.LockBatchMQ, protocol.UnlockBatchMQ:
		var lock body.LockBatchRequestBody
		if compat.Unmarshal(cmd.Body, &lock) == nil {
			into = append(into, Resource{Name: lock.ConsumerGroup, Group: true, Need: Sub})
		}
	case protocol.QueryAssignment:
		var q body.QueryAssignmentRequestBody
		if compat.Unmarshal(cmd.Body, &q) == nil {
			into = append(into, TopicResource(q.Topic, Sub), Resource{Name: q.ConsumerGroup, Group: true, Need: Sub})
		}
	case protocol.BatchAckMessage:
		var batch body.BatchAckMessageRequestBody
		if compat.Unmarshal(cmd.Body, &batch) == nil {
			for i := range batch.Acks {
				into = append(into, TopicResource(batch.Acks[i].Topic, Sub), Resource{Name: batch.Acks[i].ConsumerGroup, Group: true, Need: Sub})
			}
		}
	}
	return into
}

// heartbeatNeeds are the groups and topics of consumers; producers need nothing before they send.
func heartbeatNeeds(data []byte, into []Resource) []Resource {
	var hb body.HeartbeatData
	if compat.Unmarshal(data, &hb) != nil {
		return into
	}
	for i := range hb.ConsumerDataSet {
		d := &hb.ConsumerDataSet[i]
		into = append(into, Resource{Name: d.GroupName, Group: true, Need: Sub})
		for j := range d.SubscriptionDataSet {
			into = append(into, TopicResource(d.SubscriptionDataSet[j].Topic, Sub))
		}
	}
	return into
}
