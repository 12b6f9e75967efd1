package broker

import (
	"strconv"

	"rocketd/protocol"
	"rocketd/remoting"
)

// routes adds every request that the broker serves: code, lane, handler. Codes without a line here are in
// unsupported.go.
func (b *Broker) routes(m *remoting.Mux) {
	l := &b.lanes

	// Sending.
	remoting.HandleRun(m, []protocol.RequestCode{protocol.SendMessage, protocol.SendMessageV2, protocol.SendBatchMessage}, b.send)
	remoting.Handle(m, protocol.ConsumerSendMsgBack, l.query, b.sendBack)
	remoting.Handle(m, protocol.RecallMessage, l.query, b.recall)
	remoting.Handle(m, protocol.SendReplyMessage, l.inline, b.reply)
	remoting.Handle(m, protocol.SendReplyMessageV2, l.inline, b.reply)

	// Transactions.
	remoting.HandleRun(m, []protocol.RequestCode{protocol.EndTransaction}, b.endTransactions)
	remoting.Handle(m, protocol.ResumeCheckHalfMessage, l.query, b.resumeCheck)

	// Consuming.
	remoting.Handle(m, protocol.PullMessage, l.inline, b.pull)
	remoting.Handle(m, protocol.LitePullMessage, l.inline, b.pull) // compat: what 5.x lite pull consumers send for 11
	remoting.Handle(m, protocol.QueryConsumerOffset, l.inline, b.queryConsumerOffset)
	remoting.Handle(m, protocol.UpdateConsumerOffset, l.inline, b.updateConsumerOffset)
	remoting.Handle(m, protocol.GetMaxOffset, l.inline, b.maxOffset)
	remoting.Handle(m, protocol.GetMinOffset, l.inline, b.minOffset)
	remoting.Handle(m, protocol.SearchOffsetByTimestamp, l.query, b.searchOffset)
	remoting.Handle(m, protocol.GetEarliestMsgStoretime, l.query, b.earliestTime)
	remoting.Handle(m, protocol.LockBatchMQ, l.inline, b.lockBatch)
	remoting.Handle(m, protocol.UnlockBatchMQ, l.inline, b.unlockBatch)

	// Consuming by POP.
	remoting.Handle(m, protocol.PopMessage, l.inline, b.popMessage)
	remoting.HandleRun(m, []protocol.RequestCode{protocol.AckMessage}, b.ackMessages)
	remoting.Handle(m, protocol.BatchAckMessage, l.inline, b.batchAck)
	remoting.Handle(m, protocol.ChangeMessageInvisibleTime, l.inline, b.changeInvisibleTime)
	remoting.Handle(m, protocol.PeekMessage, l.query, b.peekMessage)
	remoting.Handle(m, protocol.Notification, l.inline, b.notification)
	remoting.Handle(m, protocol.PollingInfo, l.inline, b.pollingInfo)
	remoting.Handle(m, protocol.QueryAssignment, l.admin, b.queryAssignment)
	remoting.Handle(m, protocol.SetMessageRequestMode, l.admin, b.setRequestMode)
	remoting.Handle(m, protocol.GetAllMessageRequestMode, l.scan, b.allRequestModes)
	remoting.Handle(m, protocol.PopRollback, l.admin, b.popRollback)

	// Looking for messages.
	remoting.Handle(m, protocol.QueryMessage, l.query, b.queryMessage)
	remoting.Handle(m, protocol.ViewMessageById, l.query, b.viewMessage)

	// Clients.
	remoting.Handle(m, protocol.HeartBeat, l.inline, b.heartBeat)
	remoting.Handle(m, protocol.UnregisterClient, l.inline, b.unregisterClient)
	remoting.Handle(m, protocol.CheckClientConfig, l.inline, b.checkClientConfig)
	remoting.Handle(m, protocol.GetConsumerListByGroup, l.inline, b.consumerList)

	// Topics.
	remoting.Handle(m, protocol.UpdateAndCreateTopic, l.admin, b.updateTopic)
	remoting.Handle(m, protocol.DeleteTopicInBroker, l.admin, b.deleteTopic)
	remoting.Handle(m, protocol.GetAllTopicConfig, l.scan, b.allTopics)
	remoting.Handle(m, protocol.GetTopicConfig, l.scan, b.topicConfig)
	remoting.Handle(m, protocol.GetSystemTopicListFromBroker, l.scan, b.systemTopics)
	remoting.Handle(m, protocol.GetTopicStatsInfo, l.admin, b.topicStats)
	remoting.Handle(m, protocol.QueryTopicConsumeByWho, l.scan, b.topicConsumers)

	// Subscription groups and offsets.
	remoting.Handle(m, protocol.UpdateAndCreateSubscriptionGroup, l.admin, b.updateGroup)
	remoting.Handle(m, protocol.GetAllSubscriptionGroupConfig, l.scan, b.allGroups)
	remoting.Handle(m, protocol.DeleteSubscriptionGroup, l.admin, b.deleteGroup)
	remoting.Handle(m, protocol.GetConsumeStats, l.admin, b.consumeStats)
	remoting.Handle(m, protocol.GetBrokerConsumeStats, l.admin, b.brokerConsumeStats)
	remoting.Handle(m, protocol.QueryConsumeTimeSpan, l.admin, b.consumeTimeSpan)
	remoting.Handle(m, protocol.QueryCorrectionOffset, l.scan, b.correctionOffset)
	remoting.Handle(m, protocol.CloneGroupOffset, l.admin, b.cloneGroupOffset)
	remoting.Handle(m, protocol.GetAllConsumerOffset, l.scan, b.allOffsets)
	remoting.Handle(m, protocol.GetAllDelayOffset, l.scan, b.allDelayOffsets)

	// Connections.
	remoting.Handle(m, protocol.GetConsumerConnectionList, l.scan, b.consumerConnections)
	remoting.Handle(m, protocol.GetProducerConnectionList, l.scan, b.producerConnections)
	remoting.Handle(m, protocol.GetAllProducerInfo, l.scan, b.allProducers)

	// What the broker asks of consumers for an administrator. Nobody waits in a lane for a consumer.
	remoting.Handle(m, protocol.InvokeBrokerToResetOffset, l.admin, b.resetOffset)
	remoting.Handle(m, protocol.InvokeBrokerToGetConsumerStatus, l.admin, b.consumerStatus)
	remoting.Handle(m, protocol.GetConsumerRunningInfo, l.admin, b.consumerRunningInfo)
	remoting.Handle(m, protocol.ConsumeMessageDirectly, l.admin, b.consumeMessageDirectly)

	// The store.
	remoting.Handle(m, protocol.CleanExpiredConsumeQueue, l.admin, b.cleanExpiredQueues)
	remoting.Handle(m, protocol.CleanUnusedTopic, l.admin, b.cleanUnusedTopics)
	remoting.Handle(m, protocol.DeleteExpiredCommitLog, l.admin, b.deleteExpiredLog)
	remoting.Handle(m, protocol.QueryConsumeQueue, l.admin, b.queryConsumeQueue)

	// Access control.
	remoting.Handle(m, protocol.UpdateAndCreateAclConfig, l.admin, b.updateAclConfig)
	remoting.Handle(m, protocol.DeleteAclConfig, l.admin, b.deleteAclConfig)
	remoting.Handle(m, protocol.UpdateGlobalWhiteAddrsConfig, l.admin, b.updateGlobalWhiteAddrs)
	remoting.Handle(m, protocol.GetBrokerClusterAclInfo, l.admin, b.aclVersion)

	// The broker itself.
	remoting.Handle(m, protocol.UpdateBrokerConfig, l.admin, b.updateBrokerConfig)
	remoting.Handle(m, protocol.GetBrokerConfig, l.admin, b.getBrokerConfig) // waits while a change is written
	remoting.Handle(m, protocol.GetBrokerRuntimeInfo, l.admin, b.runtimeInfo)
	remoting.Handle(m, protocol.ViewBrokerStatsData, l.scan, b.statsData)
}

// fastWithout are the codes that the fast port does not serve, as BrokerController#registerProcessor.
var fastWithout = []protocol.RequestCode{protocol.PullMessage, protocol.LitePullMessage,
	protocol.PopMessage, protocol.PeekMessage, protocol.Notification, protocol.PollingInfo, protocol.GetAllMessageRequestMode}

// unsupported answers a code that has no route, as AdminBrokerProcessor of 4.9.8.
func unsupported(c *remoting.Call) *protocol.Command {
	return c.Answer(protocol.RequestCodeNotSupported,
		" request type "+strconv.Itoa(int(c.Command().Code))+" not supported", nil)
}
