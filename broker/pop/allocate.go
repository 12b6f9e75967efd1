package pop

import (
	"slices"

	"rocketd/protocol/body"
)

// The strategies by which a broker shares out queues, as their official classes name themselves.
const (
	strategyAvg      = "AVG"
	strategyByCircle = "AVG_BY_CIRCLE"
)

// Allocate is the queues that a client pulls of, by a strategy: queues and clientIds are sorted and the same for every
// client. False: there is no such strategy, or nothing to share out. A client that is not among them gets none.
func Allocate(strategy, clientId string, queues []body.MessageQueue, clientIds []string) ([]body.MessageQueue, bool) {
	if clientId == "" || len(queues) == 0 || len(clientIds) == 0 || strategy != strategyAvg && strategy != strategyByCircle {
		return nil, false
	}
	i := slices.Index(clientIds, clientId)
	if i < 0 {
		return nil, true
	}
	n := len(clientIds)
	if strategy == strategyByCircle {
		var mine []body.MessageQueue
		for ; i < len(queues); i += n {
			mine = append(mine, queues[i])
		}
		return mine, true
	}
	each, more := len(queues)/n, len(queues)%n
	start := i*each + min(i, more)
	if i < more {
		each++
	}
	return slices.Clone(queues[start : start+each]), true
}

// AllocatePop is the queues that a client pops. It takes those of the share members behind it too; with as many, or
// share not positive, every client pops any queue of each broker, which is told once for each queue. Members that are
// more than queues have one each (QueryAssignmentProcessor#allocate4Pop of 5.3.3).
func AllocatePop(strategy, clientId string, queues []body.MessageQueue, clientIds []string, share int32) ([]body.MessageQueue, bool) {
	if strategy != strategyAvg && strategy != strategyByCircle {
		return nil, false
	}
	n := len(clientIds)
	if share <= 0 || int(share) >= n-1 {
		var any []body.MessageQueue
		for _, q := range queues {
			any = append(any, body.MessageQueue{Topic: q.Topic, BrokerName: q.BrokerName, QueueId: -1})
		}
		return any, true
	}
	i := slices.Index(clientIds, clientId)
	if n > len(queues) {
		if clientId == "" || len(queues) == 0 {
			return nil, false
		}
		if i < 0 {
			return nil, true
		}
		return []body.MessageQueue{queues[i%len(queues)]}, true
	}
	mine, ok := Allocate(strategy, clientId, queues, clientIds)
	if !ok || i < 0 {
		return mine, ok
	}
	for k := 1; k <= int(share); k++ {
		more, _ := Allocate(strategy, clientIds[(i+k)%n], queues, clientIds)
		mine = append(mine, more...)
	}
	return mine, true
}
