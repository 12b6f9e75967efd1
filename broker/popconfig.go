package broker

// PopConfig is the keys of POP consumption, those of 5.3.3 with its defaults. All are live.
type PopConfig struct {
	PopFromRetryProbability           int    // percent of pops that look at the retry topic first; the others last
	PopPollingSize                    int    // held requests of one topic, group and queue id
	MaxPopPollingSize                 int    // held requests in all
	EnablePopMessageThreshold         bool   // keep groups from popping more of a queue than popInflightMessageThreshold
	PopInflightMessageThreshold       int    // messages of one queue that a group has and has not acknowledged
	PopResponseReturnActualRetryTopic bool   // give messages from a retry topic with that as their topic
	InitPopOffsetByCheckMsgInMem      bool   // a new group on a young queue begins at its first message
	ServerLoadBalancerEnable          bool   // share queues out; else every client gets all
	DefaultMessageRequestMode         string // of groups that nobody has set a mode for: PULL or POP
	DefaultPopShareQueueNum           int32  // of the same groups
}

func defaultPopConfig() PopConfig {
	return PopConfig{
		PopFromRetryProbability: 20, PopPollingSize: 1024, MaxPopPollingSize: 100_000,
		PopInflightMessageThreshold: 10_000, InitPopOffsetByCheckMsgInMem: true,
		ServerLoadBalancerEnable: true, DefaultMessageRequestMode: "PULL", DefaultPopShareQueueNum: -1,
	}
}
