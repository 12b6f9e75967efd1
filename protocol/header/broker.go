package header

import "rocketd/protocol"

// RegisterBrokerRequest is the header of requests REGISTER_BROKER.
type RegisterBrokerRequest struct {
	BrokerName   string                   `rmq:",required"`
	BrokerAddr   string                   `rmq:",required"`
	ClusterName  string                   `rmq:",required"`
	HaServerAddr string                   `rmq:",required"` // brokerIP2:haListenPort
	BrokerId     int64                    `rmq:",required"`
	Compressed   bool                     // true = body is deflated binary form, see bodies.md
	BodyCrc32    protocol.Optional[int32] // CRC32 & 0x7fffffff of the body as sent; 0 = not checked
}

// RegisterBrokerResponse is the header of answers to REGISTER_BROKER.
type RegisterBrokerResponse struct {
	HaServerAddr string // only filled for brokerId != 0 when the master is registered
	MasterAddr   string // only filled for brokerId != 0 when the master is registered
}

// UnRegisterBrokerRequest is the header of requests UNREGISTER_BROKER.
type UnRegisterBrokerRequest struct {
	BrokerName  string
	BrokerAddr  string
	ClusterName string
	BrokerId    int64 `rmq:",required"`
}

// QueryDataVersionRequest is the header of requests QUERY_DATA_VERSION.
type QueryDataVersionRequest struct {
	BrokerName  string
	BrokerAddr  string
	ClusterName string
	BrokerId    int64
}

// QueryDataVersionResponse is the header of answers to QUERY_DATA_VERSION.
type QueryDataVersionResponse struct {
	Changed bool
}

// WipeWritePermOfBrokerRequest is the header of requests WIPE_WRITE_PERM_OF_BROKER.
type WipeWritePermOfBrokerRequest struct {
	BrokerName string
}

// WipeWritePermOfBrokerResponse is the header of answers to WIPE_WRITE_PERM_OF_BROKER.
type WipeWritePermOfBrokerResponse struct {
	WipeTopicCount int32
}

// AddWritePermOfBrokerRequest is the header of requests ADD_WRITE_PERM_OF_BROKER.
type AddWritePermOfBrokerRequest struct {
	BrokerName string
}

// AddWritePermOfBrokerResponse is the header of answers to ADD_WRITE_PERM_OF_BROKER.
type AddWritePermOfBrokerResponse struct {
	AddTopicCount int32
}
