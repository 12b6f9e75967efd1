package header

// No request of this file has a required field: the official name server answers them all as if the value
// were null, mostly with a remark that says so.

// GetRouteInfoRequest is the header of requests GET_ROUTEINFO_BY_TOPIC.
type GetRouteInfoRequest struct {
	Topic                  string
	AcceptStandardJsonOnly bool // true forces standard JSON; also forced when request version >= 401 (V4_9_4)
}

// PutKVConfigRequest is the header of requests PUT_KV_CONFIG.
type PutKVConfigRequest struct {
	Namespace string
	Key       string
	Value     string
}

// GetKVConfigRequest is the header of requests GET_KV_CONFIG.
type GetKVConfigRequest struct {
	Namespace string
	Key       string
}

// GetKVConfigResponse is the header of answers to GET_KV_CONFIG.
type GetKVConfigResponse struct {
	Value string
}

// DeleteKVConfigRequest is the header of requests DELETE_KV_CONFIG.
type DeleteKVConfigRequest struct {
	Namespace string
	Key       string
}

// GetKVListByNamespaceRequest is the header of requests GET_KVLIST_BY_NAMESPACE.
type GetKVListByNamespaceRequest struct {
	Namespace string
}
