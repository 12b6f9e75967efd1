package protocol

import "strconv"

// RequestCode is the number of a request (the "code" of a command whose response bit is clear).
// The values are those of the official 4.9.8 RequestCode; a code that only the client serves is
// sent from the broker to a client.
type RequestCode int32

// The request codes of 4.9.8. Codes that the official server no longer serves are declared too:
// it answers them like an unknown code.
const (
	SendMessage                      RequestCode = 10
	PullMessage                      RequestCode = 11
	QueryMessage                     RequestCode = 12
	QueryBrokerOffset                RequestCode = 13
	QueryConsumerOffset              RequestCode = 14
	UpdateConsumerOffset             RequestCode = 15
	UpdateAndCreateTopic             RequestCode = 17
	GetAllTopicConfig                RequestCode = 21
	GetTopicConfigList               RequestCode = 22
	GetTopicNameList                 RequestCode = 23
	UpdateBrokerConfig               RequestCode = 25
	GetBrokerConfig                  RequestCode = 26
	TriggerDeleteFiles               RequestCode = 27
	GetBrokerRuntimeInfo             RequestCode = 28
	SearchOffsetByTimestamp          RequestCode = 29
	GetMaxOffset                     RequestCode = 30
	GetMinOffset                     RequestCode = 31
	GetEarliestMsgStoretime          RequestCode = 32
	ViewMessageById                  RequestCode = 33
	HeartBeat                        RequestCode = 34
	UnregisterClient                 RequestCode = 35
	ConsumerSendMsgBack              RequestCode = 36
	EndTransaction                   RequestCode = 37
	GetConsumerListByGroup           RequestCode = 38
	CheckTransactionState            RequestCode = 39
	NotifyConsumerIdsChanged         RequestCode = 40
	LockBatchMQ                      RequestCode = 41
	UnlockBatchMQ                    RequestCode = 42
	GetAllConsumerOffset             RequestCode = 43
	GetAllDelayOffset                RequestCode = 45
	CheckClientConfig                RequestCode = 46
	UpdateAndCreateAclConfig         RequestCode = 50
	DeleteAclConfig                  RequestCode = 51
	GetBrokerClusterAclInfo          RequestCode = 52
	UpdateGlobalWhiteAddrsConfig     RequestCode = 53
	GetBrokerClusterAclConfig        RequestCode = 54
	PutKVConfig                      RequestCode = 100
	GetKVConfig                      RequestCode = 101
	DeleteKVConfig                   RequestCode = 102
	RegisterBroker                   RequestCode = 103
	UnregisterBroker                 RequestCode = 104
	GetRouteInfoByTopic              RequestCode = 105
	GetBrokerClusterInfo             RequestCode = 106
	UpdateAndCreateSubscriptionGroup RequestCode = 200
	GetAllSubscriptionGroupConfig    RequestCode = 201
	GetTopicStatsInfo                RequestCode = 202
	GetConsumerConnectionList        RequestCode = 203
	GetProducerConnectionList        RequestCode = 204
	WipeWritePermOfBroker            RequestCode = 205
	GetAllTopicListFromNameserver    RequestCode = 206
	DeleteSubscriptionGroup          RequestCode = 207
	GetConsumeStats                  RequestCode = 208
	SuspendConsumer                  RequestCode = 209
	ResumeConsumer                   RequestCode = 210
	ResetConsumerOffsetInConsumer    RequestCode = 211
	ResetConsumerOffsetInBroker      RequestCode = 212
	AdjustConsumerThreadPool         RequestCode = 213
	WhoConsumeTheMessage             RequestCode = 214
	DeleteTopicInBroker              RequestCode = 215
	DeleteTopicInNamesrv             RequestCode = 216
	GetKVListByNamespace             RequestCode = 219
	ResetConsumerClientOffset        RequestCode = 220
	GetConsumerStatusFromClient      RequestCode = 221
	InvokeBrokerToResetOffset        RequestCode = 222
	InvokeBrokerToGetConsumerStatus  RequestCode = 223
	GetTopicsByCluster               RequestCode = 224
	QueryTopicConsumeByWho           RequestCode = 300
	RegisterFilterServer             RequestCode = 301
	RegisterMessageFilterClass       RequestCode = 302
	QueryConsumeTimeSpan             RequestCode = 303
	GetSystemTopicListFromNs         RequestCode = 304
	GetSystemTopicListFromBroker     RequestCode = 305
	CleanExpiredConsumeQueue         RequestCode = 306
	GetConsumerRunningInfo           RequestCode = 307
	QueryCorrectionOffset            RequestCode = 308
	ConsumeMessageDirectly           RequestCode = 309
	SendMessageV2                    RequestCode = 310
	GetUnitTopicList                 RequestCode = 311
	GetHasUnitSubTopicList           RequestCode = 312
	GetHasUnitSubUnunitTopicList     RequestCode = 313
	CloneGroupOffset                 RequestCode = 314
	ViewBrokerStatsData              RequestCode = 315
	CleanUnusedTopic                 RequestCode = 316
	GetBrokerConsumeStats            RequestCode = 317
	UpdateNamesrvConfig              RequestCode = 318
	GetNamesrvConfig                 RequestCode = 319
	SendBatchMessage                 RequestCode = 320
	QueryConsumeQueue                RequestCode = 321
	QueryDataVersion                 RequestCode = 322
	ResumeCheckHalfMessage           RequestCode = 323
	SendReplyMessage                 RequestCode = 324
	SendReplyMessageV2               RequestCode = 325
	PushReplyMessageToClient         RequestCode = 326
	AddWritePermOfBroker             RequestCode = 327
	GetAllProducerInfo               RequestCode = 328
	DeleteExpiredCommitLog           RequestCode = 329

	// Codes of 5.x that its stock clients and tools send to any broker.
	GetTopicConfig  RequestCode = 351
	LitePullMessage RequestCode = 361
	// RecallMessage takes a timer message back before it is due (5.3).
	RecallMessage RequestCode = 370

	// POP consumption of 5.x. Codes above 32767 do not fit the binary header: its clients use JSON.
	QueryAssignment            RequestCode = 400
	SetMessageRequestMode      RequestCode = 401
	GetAllMessageRequestMode   RequestCode = 402
	PopMessage                 RequestCode = 200050
	AckMessage                 RequestCode = 200051
	PeekMessage                RequestCode = 200052
	ChangeMessageInvisibleTime RequestCode = 200053
	Notification               RequestCode = 200054
	PollingInfo                RequestCode = 200055
	PopRollback                RequestCode = 200056
	BatchAckMessage            RequestCode = 200151
)

var requestNames = map[RequestCode]string{
	SendMessage:                      "SEND_MESSAGE",
	PullMessage:                      "PULL_MESSAGE",
	QueryMessage:                     "QUERY_MESSAGE",
	QueryBrokerOffset:                "QUERY_BROKER_OFFSET",
	QueryConsumerOffset:              "QUERY_CONSUMER_OFFSET",
	UpdateConsumerOffset:             "UPDATE_CONSUMER_OFFSET",
	UpdateAndCreateTopic:             "UPDATE_AND_CREATE_TOPIC",
	GetAllTopicConfig:                "GET_ALL_TOPIC_CONFIG",
	GetTopicConfigList:               "GET_TOPIC_CONFIG_LIST",
	GetTopicNameList:                 "GET_TOPIC_NAME_LIST",
	UpdateBrokerConfig:               "UPDATE_BROKER_CONFIG",
	GetBrokerConfig:                  "GET_BROKER_CONFIG",
	TriggerDeleteFiles:               "TRIGGER_DELETE_FILES",
	GetBrokerRuntimeInfo:             "GET_BROKER_RUNTIME_INFO",
	SearchOffsetByTimestamp:          "SEARCH_OFFSET_BY_TIMESTAMP",
	GetMaxOffset:                     "GET_MAX_OFFSET",
	GetMinOffset:                     "GET_MIN_OFFSET",
	GetEarliestMsgStoretime:          "GET_EARLIEST_MSG_STORETIME",
	ViewMessageById:                  "VIEW_MESSAGE_BY_ID",
	HeartBeat:                        "HEART_BEAT",
	UnregisterClient:                 "UNREGISTER_CLIENT",
	ConsumerSendMsgBack:              "CONSUMER_SEND_MSG_BACK",
	EndTransaction:                   "END_TRANSACTION",
	GetConsumerListByGroup:           "GET_CONSUMER_LIST_BY_GROUP",
	CheckTransactionState:            "CHECK_TRANSACTION_STATE",
	NotifyConsumerIdsChanged:         "NOTIFY_CONSUMER_IDS_CHANGED",
	LockBatchMQ:                      "LOCK_BATCH_MQ",
	UnlockBatchMQ:                    "UNLOCK_BATCH_MQ",
	GetAllConsumerOffset:             "GET_ALL_CONSUMER_OFFSET",
	GetAllDelayOffset:                "GET_ALL_DELAY_OFFSET",
	CheckClientConfig:                "CHECK_CLIENT_CONFIG",
	UpdateAndCreateAclConfig:         "UPDATE_AND_CREATE_ACL_CONFIG",
	DeleteAclConfig:                  "DELETE_ACL_CONFIG",
	GetBrokerClusterAclInfo:          "GET_BROKER_CLUSTER_ACL_INFO",
	UpdateGlobalWhiteAddrsConfig:     "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG",
	GetBrokerClusterAclConfig:        "GET_BROKER_CLUSTER_ACL_CONFIG",
	PutKVConfig:                      "PUT_KV_CONFIG",
	GetKVConfig:                      "GET_KV_CONFIG",
	DeleteKVConfig:                   "DELETE_KV_CONFIG",
	RegisterBroker:                   "REGISTER_BROKER",
	UnregisterBroker:                 "UNREGISTER_BROKER",
	GetRouteInfoByTopic:              "GET_ROUTEINFO_BY_TOPIC",
	GetBrokerClusterInfo:             "GET_BROKER_CLUSTER_INFO",
	UpdateAndCreateSubscriptionGroup: "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP",
	GetAllSubscriptionGroupConfig:    "GET_ALL_SUBSCRIPTIONGROUP_CONFIG",
	GetTopicStatsInfo:                "GET_TOPIC_STATS_INFO",
	GetConsumerConnectionList:        "GET_CONSUMER_CONNECTION_LIST",
	GetProducerConnectionList:        "GET_PRODUCER_CONNECTION_LIST",
	WipeWritePermOfBroker:            "WIPE_WRITE_PERM_OF_BROKER",
	GetAllTopicListFromNameserver:    "GET_ALL_TOPIC_LIST_FROM_NAMESERVER",
	DeleteSubscriptionGroup:          "DELETE_SUBSCRIPTIONGROUP",
	GetConsumeStats:                  "GET_CONSUME_STATS",
	SuspendConsumer:                  "SUSPEND_CONSUMER",
	ResumeConsumer:                   "RESUME_CONSUMER",
	ResetConsumerOffsetInConsumer:    "RESET_CONSUMER_OFFSET_IN_CONSUMER",
	ResetConsumerOffsetInBroker:      "RESET_CONSUMER_OFFSET_IN_BROKER",
	AdjustConsumerThreadPool:         "ADJUST_CONSUMER_THREAD_POOL",
	WhoConsumeTheMessage:             "WHO_CONSUME_THE_MESSAGE",
	DeleteTopicInBroker:              "DELETE_TOPIC_IN_BROKER",
	DeleteTopicInNamesrv:             "DELETE_TOPIC_IN_NAMESRV",
	GetKVListByNamespace:             "GET_KVLIST_BY_NAMESPACE",
	ResetConsumerClientOffset:        "RESET_CONSUMER_CLIENT_OFFSET",
	GetConsumerStatusFromClient:      "GET_CONSUMER_STATUS_FROM_CLIENT",
	InvokeBrokerToResetOffset:        "INVOKE_BROKER_TO_RESET_OFFSET",
	InvokeBrokerToGetConsumerStatus:  "INVOKE_BROKER_TO_GET_CONSUMER_STATUS",
	GetTopicsByCluster:               "GET_TOPICS_BY_CLUSTER",
	QueryTopicConsumeByWho:           "QUERY_TOPIC_CONSUME_BY_WHO",
	RegisterFilterServer:             "REGISTER_FILTER_SERVER",
	RegisterMessageFilterClass:       "REGISTER_MESSAGE_FILTER_CLASS",
	QueryConsumeTimeSpan:             "QUERY_CONSUME_TIME_SPAN",
	GetSystemTopicListFromNs:         "GET_SYSTEM_TOPIC_LIST_FROM_NS",
	GetSystemTopicListFromBroker:     "GET_SYSTEM_TOPIC_LIST_FROM_BROKER",
	CleanExpiredConsumeQueue:         "CLEAN_EXPIRED_CONSUMEQUEUE",
	GetConsumerRunningInfo:           "GET_CONSUMER_RUNNING_INFO",
	QueryCorrectionOffset:            "QUERY_CORRECTION_OFFSET",
	ConsumeMessageDirectly:           "CONSUME_MESSAGE_DIRECTLY",
	SendMessageV2:                    "SEND_MESSAGE_V2",
	GetUnitTopicList:                 "GET_UNIT_TOPIC_LIST",
	GetHasUnitSubTopicList:           "GET_HAS_UNIT_SUB_TOPIC_LIST",
	GetHasUnitSubUnunitTopicList:     "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST",
	CloneGroupOffset:                 "CLONE_GROUP_OFFSET",
	ViewBrokerStatsData:              "VIEW_BROKER_STATS_DATA",
	CleanUnusedTopic:                 "CLEAN_UNUSED_TOPIC",
	GetBrokerConsumeStats:            "GET_BROKER_CONSUME_STATS",
	UpdateNamesrvConfig:              "UPDATE_NAMESRV_CONFIG",
	GetNamesrvConfig:                 "GET_NAMESRV_CONFIG",
	SendBatchMessage:                 "SEND_BATCH_MESSAGE",
	QueryConsumeQueue:                "QUERY_CONSUME_QUEUE",
	QueryDataVersion:                 "QUERY_DATA_VERSION",
	ResumeCheckHalfMessage:           "RESUME_CHECK_HALF_MESSAGE",
	SendReplyMessage:                 "SEND_REPLY_MESSAGE",
	SendReplyMessageV2:               "SEND_REPLY_MESSAGE_V2",
	PushReplyMessageToClient:         "PUSH_REPLY_MESSAGE_TO_CLIENT",
	AddWritePermOfBroker:             "ADD_WRITE_PERM_OF_BROKER",
	GetAllProducerInfo:               "GET_ALL_PRODUCER_INFO",
	DeleteExpiredCommitLog:           "DELETE_EXPIRED_COMMITLOG",
	GetTopicConfig:                   "GET_TOPIC_CONFIG",
	LitePullMessage:                  "LITE_PULL_MESSAGE",
	RecallMessage:                    "RECALL_MESSAGE",
	QueryAssignment:                  "QUERY_ASSIGNMENT",
	SetMessageRequestMode:            "SET_MESSAGE_REQUEST_MODE",
	GetAllMessageRequestMode:         "GET_ALL_MESSAGE_REQUEST_MODE",
	PopMessage:                       "POP_MESSAGE",
	AckMessage:                       "ACK_MESSAGE",
	PeekMessage:                      "PEEK_MESSAGE",
	ChangeMessageInvisibleTime:       "CHANGE_MESSAGE_INVISIBLETIME",
	Notification:                     "NOTIFICATION",
	PollingInfo:                      "POLLING_INFO",
	PopRollback:                      "POP_ROLLBACK",
	BatchAckMessage:                  "BATCH_ACK_MESSAGE",
}

// RequestCodes returns every declared request code, in no particular order.
func RequestCodes() []RequestCode {
	codes := make([]RequestCode, 0, len(requestNames))
	for c := range requestNames {
		codes = append(codes, c)
	}
	return codes
}

// String returns the official name of the code, or its number when it is unknown.
func (c RequestCode) String() string {
	if n, ok := requestNames[c]; ok {
		return n
	}
	return strconv.Itoa(int(c))
}
