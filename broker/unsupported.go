package broker

import "rocketd/protocol"

// Why a code has no route.
const (
	unused    = "no client of 4.9.8 sends it and the official broker answers it like an unknown code"
	ofNamesrv = "served by the name server"
	ofClient  = "sent by the broker to a client"
)

// Unsupported names every declared request code that the broker answers REQUEST_CODE_NOT_SUPPORTED, with the
// reason.
var Unsupported = map[protocol.RequestCode]string{
	protocol.QueryBrokerOffset:             unused,
	protocol.GetTopicConfigList:            unused,
	protocol.GetTopicNameList:              unused,
	protocol.TriggerDeleteFiles:            unused,
	protocol.SuspendConsumer:               unused,
	protocol.ResumeConsumer:                unused,
	protocol.ResetConsumerOffsetInConsumer: unused,
	protocol.ResetConsumerOffsetInBroker:   unused,
	protocol.AdjustConsumerThreadPool:      unused,
	protocol.WhoConsumeTheMessage:          unused,
	protocol.RegisterFilterServer:          unused,
	protocol.RegisterMessageFilterClass:    unused,
	protocol.GetBrokerClusterAclConfig:     "removed in 4.9.8; it told secret keys",

	protocol.PutKVConfig:                   ofNamesrv,
	protocol.GetKVConfig:                   ofNamesrv,
	protocol.DeleteKVConfig:                ofNamesrv,
	protocol.RegisterBroker:                ofNamesrv,
	protocol.UnregisterBroker:              ofNamesrv,
	protocol.GetRouteInfoByTopic:           ofNamesrv,
	protocol.GetBrokerClusterInfo:          ofNamesrv,
	protocol.WipeWritePermOfBroker:         ofNamesrv,
	protocol.GetAllTopicListFromNameserver: ofNamesrv,
	protocol.DeleteTopicInNamesrv:          ofNamesrv,
	protocol.GetKVListByNamespace:          ofNamesrv,
	protocol.GetTopicsByCluster:            ofNamesrv,
	protocol.GetSystemTopicListFromNs:      ofNamesrv,
	protocol.GetUnitTopicList:              ofNamesrv,
	protocol.GetHasUnitSubTopicList:        ofNamesrv,
	protocol.GetHasUnitSubUnunitTopicList:  ofNamesrv,
	protocol.UpdateNamesrvConfig:           ofNamesrv,
	protocol.GetNamesrvConfig:              ofNamesrv,
	protocol.QueryDataVersion:              ofNamesrv,
	protocol.AddWritePermOfBroker:          ofNamesrv,

	protocol.CheckTransactionState:       ofClient,
	protocol.NotifyConsumerIdsChanged:    ofClient,
	protocol.ResetConsumerClientOffset:   ofClient,
	protocol.GetConsumerStatusFromClient: ofClient,
	protocol.PushReplyMessageToClient:    ofClient,
}
