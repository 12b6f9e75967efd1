package broker

// LimitConfig is keys of our own: how much peers may make a broker keep. 0 = no bound. All are live.
type LimitConfig struct {
	MaxTopics             int   // topics; at the bound a send to a new one is answered TOPIC_NOT_EXIST, and code 17 SYSTEM_ERROR
	MaxSubscriptionGroups int   // groups; at the bound a new one is answered SUBSCRIPTION_GROUP_NOT_EXIST, and code 200 SYSTEM_ERROR
	MaxClientGroups       int   // producer groups, and consumer groups, of one connection; a heartbeat with more is answered SYSTEM_ERROR
	MaxClientBytes        int64 // bytes that groups, members and subscriptions of heartbeats take in memory; a heartbeat that needs more is answered SYSTEM_ERROR
	MaxConsumerOffsets    int   // offsets of a group in a queue; at the bound a new one is not kept, and code 15 is answered SYSTEM_ERROR
	MaxQueueLocks         int   // locks of a group on a queue; at the bound no further one is given
	MaxExpressionBytes    int64 // bytes of SQL92 expressions of consumer groups; at the bound a further one is refused, as one that is wrong
	MaxRequestModes       int   // request modes that are set (code 401); at the bound a further one is answered SYSTEM_ERROR
	MaxJsonBytes          int   // bytes of a request's JSON: heartbeats, queue locks, groups; a larger one is answered SYSTEM_ERROR, and of large ones too many at once SYSTEM_BUSY
	MaxHeldPulls          int64 // pulls held at once; at the bound one that finds nothing is answered at once
}

// defaultLimits are far beyond what a large installation has; a name server takes 400,000 topics of a broker.
func defaultLimits() LimitConfig {
	return LimitConfig{
		MaxTopics: 400_000, MaxSubscriptionGroups: 200_000, MaxClientGroups: 10_000, MaxClientBytes: 512 << 20,
		MaxConsumerOffsets: 5_000_000, MaxQueueLocks: 1_000_000, MaxExpressionBytes: 16 << 20, MaxRequestModes: 100_000,
		MaxJsonBytes: 4 << 20, MaxHeldPulls: 1 << 20,
	}
}
