package body

// Connection is one client in the answers to GET_CONSUMER_CONNECTION_LIST and GET_PRODUCER_CONNECTION_LIST.
type Connection struct {
	ClientAddr string // ip:port
	ClientId   string
	Language   string
	Version    int32
}

// ConsumerConnection answers GET_CONSUMER_CONNECTION_LIST.
type ConsumerConnection struct {
	ConnectionSet     []Connection
	ConsumeFromWhere  ConsumeFromWhere `json:",omitempty"`
	ConsumeType       ConsumeType      `json:",omitempty"`
	MessageModel      MessageModel     `json:",omitempty"`
	SubscriptionTable map[string]SubscriptionData
}

// ProducerConnection answers GET_PRODUCER_CONNECTION_LIST.
type ProducerConnection struct {
	ConnectionSet []Connection
}

// ProducerInfo is one producer in a ProducerTableInfo.
type ProducerInfo struct {
	ClientId            string
	Language            string
	LastUpdateTimestamp int64  // ms
	RemoteIP            string // Java's socket address: with a leading slash
	Version             int32
}

// ProducerTableInfo answers GET_ALL_PRODUCER_INFO: by group.
type ProducerTableInfo struct {
	Data map[string][]ProducerInfo
}
