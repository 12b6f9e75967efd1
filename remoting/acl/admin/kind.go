package admin

import "rocketd/protocol"

// Kind is what a request code is for.
type Kind uint8

// The kinds.
const (
	Unknown      Kind = iota // no code of ours
	Work                     // what stock clients send as their work: messages, offsets, heartbeats, locks
	Question                 // changes nothing
	Change                   // an administrator changes something: topics, groups, offsets of others, files, settings, accounts
	Registration             // a broker tells a name server of itself
	ToClient                 // sent by a broker to a client
	Unserved                 // has no handler anywhere
)

// kinds has every declared code. UPDATE_CONSUMER_OFFSET is a consumer's work, though mqadmin sends it too.
// QUERY_CORRECTION_OFFSET deletes nothing here, and an administrator's questions that a consumer answers (223, 307)
// change nothing; CONSUME_MESSAGE_DIRECTLY makes a consumer consume.
var kinds = map[Kind][]protocol.RequestCode{
	Work: {
		protocol.SendMessage, protocol.SendMessageV2, protocol.SendBatchMessage, protocol.ConsumerSendMsgBack, protocol.RecallMessage,
		protocol.SendReplyMessage, protocol.SendReplyMessageV2, protocol.EndTransaction,
		protocol.PullMessage, protocol.LitePullMessage, protocol.UpdateConsumerOffset, protocol.LockBatchMQ, protocol.UnlockBatchMQ,
		protocol.PopMessage, protocol.AckMessage, protocol.BatchAckMessage, protocol.ChangeMessageInvisibleTime, protocol.PeekMessage, protocol.Notification,
		protocol.HeartBeat, protocol.UnregisterClient,
	},
	Question: {
		protocol.QueryMessage, protocol.ViewMessageById, protocol.QueryConsumerOffset, protocol.SearchOffsetByTimestamp, protocol.GetMaxOffset, protocol.GetMinOffset,
		protocol.GetEarliestMsgStoretime, protocol.GetConsumerListByGroup, protocol.CheckClientConfig, protocol.QueryAssignment, protocol.PollingInfo,
		protocol.GetAllTopicConfig, protocol.GetTopicConfig, protocol.GetBrokerConfig, protocol.GetBrokerRuntimeInfo, protocol.GetAllConsumerOffset, protocol.GetAllDelayOffset,
		protocol.GetAllMessageRequestMode, protocol.GetBrokerClusterAclInfo, protocol.GetAllSubscriptionGroupConfig, protocol.GetTopicStatsInfo,
		protocol.GetConsumerConnectionList, protocol.GetProducerConnectionList, protocol.GetAllProducerInfo, protocol.GetConsumeStats, protocol.GetBrokerConsumeStats,
		protocol.QueryTopicConsumeByWho, protocol.QueryConsumeTimeSpan, protocol.QueryCorrectionOffset, protocol.QueryConsumeQueue, protocol.GetSystemTopicListFromBroker,
		protocol.ViewBrokerStatsData, protocol.GetConsumerRunningInfo, protocol.InvokeBrokerToGetConsumerStatus,

		protocol.GetRouteInfoByTopic, protocol.GetBrokerClusterInfo, protocol.GetAllTopicListFromNameserver, protocol.GetTopicsByCluster, protocol.GetSystemTopicListFromNs,
		protocol.GetUnitTopicList, protocol.GetHasUnitSubTopicList, protocol.GetHasUnitSubUnunitTopicList, protocol.GetKVConfig, protocol.GetKVListByNamespace,
		protocol.GetNamesrvConfig,
	},
	Change: {
		protocol.UpdateAndCreateTopic, protocol.DeleteTopicInBroker, protocol.UpdateAndCreateSubscriptionGroup, protocol.DeleteSubscriptionGroup, protocol.SetMessageRequestMode,
		protocol.UpdateBrokerConfig, protocol.UpdateAndCreateAclConfig, protocol.DeleteAclConfig, protocol.UpdateGlobalWhiteAddrsConfig,
		protocol.InvokeBrokerToResetOffset, protocol.CloneGroupOffset, protocol.ConsumeMessageDirectly, protocol.ResumeCheckHalfMessage, protocol.PopRollback,
		protocol.CleanExpiredConsumeQueue, protocol.CleanUnusedTopic, protocol.DeleteExpiredCommitLog,

		protocol.PutKVConfig, protocol.DeleteKVConfig, protocol.WipeWritePermOfBroker, protocol.AddWritePermOfBroker, protocol.DeleteTopicInNamesrv, protocol.UpdateNamesrvConfig,
	},
	Registration: {protocol.RegisterBroker, protocol.UnregisterBroker, protocol.QueryDataVersion},
	ToClient: {
		protocol.CheckTransactionState, protocol.NotifyConsumerIdsChanged, protocol.ResetConsumerClientOffset, protocol.GetConsumerStatusFromClient,
		protocol.PushReplyMessageToClient,
	},
	Unserved: {
		protocol.QueryBrokerOffset, protocol.GetTopicConfigList, protocol.GetTopicNameList, protocol.TriggerDeleteFiles, protocol.SuspendConsumer, protocol.ResumeConsumer,
		protocol.ResetConsumerOffsetInConsumer, protocol.ResetConsumerOffsetInBroker, protocol.AdjustConsumerThreadPool, protocol.WhoConsumeTheMessage,
		protocol.RegisterFilterServer, protocol.RegisterMessageFilterClass, protocol.GetBrokerClusterAclConfig,
	},
}

// byCode is kinds the other way round; a code of two kinds panics.
var byCode = func() map[protocol.RequestCode]Kind {
	all := make(map[protocol.RequestCode]Kind)
	for kind, codes := range kinds {
		for _, code := range codes {
			if all[code] != Unknown {
				panic("admin: request code " + code.String() + " has two kinds")
			}
			all[code] = kind
		}
	}
	return all
}()

// KindOf is what a code is for; Unknown for one that is not declared.
func KindOf(code protocol.RequestCode) Kind { return byCode[code] }
