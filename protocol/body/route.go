package body

// QueueData says how many queues of a topic one broker has, and what may be done with them.
type QueueData struct {
	BrokerName     string
	Perm           int32 // 4 read, 2 write, 1 inherit
	ReadQueueNums  int32
	TopicSysFlag   int32
	WriteQueueNums int32
}

// BrokerData is the members of a broker set: id to address, 0 being the master.
type BrokerData struct {
	BrokerAddrs map[int64]string
	BrokerName  string
	Cluster     string
}

// TopicRouteData answers GET_ROUTEINFO_BY_TOPIC. FilterServerTable must not be nil on the wire: the Java
// client would get null.
type TopicRouteData struct {
	BrokerDatas       []BrokerData
	FilterServerTable map[string][]string
	OrderTopicConf    string `json:",omitempty"`
	QueueDatas        []QueueData
}

// ClusterInfo answers GET_BROKER_CLUSTER_INFO.
type ClusterInfo struct {
	BrokerAddrTable  map[string]BrokerData
	ClusterAddrTable map[string][]string
}

// TopicList answers the requests for lists of topics.
type TopicList struct {
	BrokerAddr string `json:",omitempty"` // set by GET_SYSTEM_TOPIC_LIST_FROM_NS only
	TopicList  []string
}
