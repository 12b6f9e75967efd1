package namesrv

import (
	"rocketd/protocol"
	"rocketd/remoting"
)

// handle adds the routes of all codes that a name server serves.
func (s *Server) handle(m *remoting.Mux) {
	remoting.Handle(m, protocol.GetRouteInfoByTopic, remoting.Inline, s.getRouteInfoByTopic)
	remoting.Handle(m, protocol.GetBrokerClusterInfo, remoting.Inline, s.getBrokerClusterInfo)
	remoting.Handle(m, protocol.GetAllTopicListFromNameserver, remoting.Inline, s.getAllTopicList)
	remoting.Handle(m, protocol.GetTopicsByCluster, remoting.Inline, s.getTopicsByCluster)
	remoting.Handle(m, protocol.GetSystemTopicListFromNs, remoting.Inline, s.getSystemTopicList)
	remoting.Handle(m, protocol.GetUnitTopicList, remoting.Inline, s.getUnitTopicList)
	remoting.Handle(m, protocol.GetHasUnitSubTopicList, remoting.Inline, s.getHasUnitSubTopicList)
	remoting.Handle(m, protocol.GetHasUnitSubUnunitTopicList, remoting.Inline, s.getHasUnitSubUnunitTopicList)

	remoting.Handle(m, protocol.RegisterBroker, remoting.Inline, s.registerBroker)
	remoting.Handle(m, protocol.UnregisterBroker, remoting.Inline, s.unregisterBroker)
	remoting.Handle(m, protocol.QueryDataVersion, remoting.Inline, s.queryDataVersion)
	remoting.Handle(m, protocol.WipeWritePermOfBroker, remoting.Inline, s.wipeWritePerm)
	remoting.Handle(m, protocol.AddWritePermOfBroker, remoting.Inline, s.addWritePerm)
	remoting.Handle(m, protocol.DeleteTopicInNamesrv, remoting.Inline, s.deleteTopic)

	remoting.Handle(m, protocol.PutKVConfig, remoting.Inline, s.putKVConfig)
	remoting.Handle(m, protocol.GetKVConfig, remoting.Inline, s.getKVConfig)
	remoting.Handle(m, protocol.DeleteKVConfig, remoting.Inline, s.deleteKVConfig)
	remoting.Handle(m, protocol.GetKVListByNamespace, remoting.Inline, s.getKVList)

	remoting.Handle(m, protocol.UpdateNamesrvConfig, remoting.Inline, s.updateConfig)
	remoting.Handle(m, protocol.GetNamesrvConfig, remoting.Inline, s.getConfig)
}
