package header

// CreateAccessConfigRequest is the header of requests UPDATE_AND_CREATE_ACL_CONFIG.
type CreateAccessConfigRequest struct {
	AccessKey          string
	SecretKey          string
	WhiteRemoteAddress string
	Admin              bool
	DefaultTopicPerm   string
	DefaultGroupPerm   string
	TopicPerms         string // comma separated res=PERM list
	GroupPerms         string // comma separated res=PERM list
}

// DeleteAccessConfigRequest is the header of requests DELETE_ACL_CONFIG.
type DeleteAccessConfigRequest struct {
	AccessKey string
}

// UpdateGlobalWhiteAddrsConfigRequest is the header of requests UPDATE_GLOBAL_WHITE_ADDRS_CONFIG.
type UpdateGlobalWhiteAddrsConfigRequest struct {
	GlobalWhiteAddrs string // comma separated
	AclFileFullPath  string // annotated required, but decoding only logs a missing required field (see wire.md); empty or missing = default file
}

// GetBrokerAclConfigResponse is the header of answers to GET_BROKER_CLUSTER_ACL_INFO.
type GetBrokerAclConfigResponse struct {
	Version           string // DataVersion JSON string of the default file
	AllAclFileVersion string // JSON string: {"file path":{"counter":n,"timestamp":t}}
	BrokerName        string
	BrokerAddr        string
	ClusterName       string
}
