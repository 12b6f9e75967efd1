package header

// GetRouteInfoRequest is the header of requests GET_ROUTEINFO_BY_TOPIC.
type GetRouteInfoRequest struct {
	Topic                  string
	AcceptStandardJsonOnly bool // true forces standard JSON; also forced when request version >= 401 (V4_9_4)
}

// PutKVConfigRequest is the header of requests PUT_KV_CONFIG.
type PutKVConfigRequest struct {
	Namespace string `rmq:",required"`
	Key       string `rmq:",required"`
	Value     string `rmq:",required"`
}

// GetKVConfigRequest is the header of requests GET_KV_CONFIG.
type GetKVConfigRequest struct {
	Namespace string `rmq:",required"`
	Key       string `rmq:",required"`
}

// GetKVConfigResponse is the header of answers to GET_KV_CONFIG.
type GetKVConfigResponse struct {
	Value string
}

// DeleteKVConfigRequest is the header of requests DELETE_KV_CONFIG.
type DeleteKVConfigRequest struct {
	Namespace string `rmq:",required"`
	Key       string `rmq:",required"`
}

// GetKVListByNamespaceRequest is the header of requests GET_KVLIST_BY_NAMESPACE.
type GetKVListByNamespaceRequest struct {
	Namespace string `rmq:",required"`
}
