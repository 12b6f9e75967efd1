package main

import (
	"context"
	"errors"
	"slices"

	"rocketd/conformance/target"
)

// aclMetrics are what access control costs a send, by two servers of one kind side by side.
var aclMetrics = []metric{
	{"signed send 128 B, 64x32: server CPU without access control", "µs/message", none, 2},
	{"signed send 128 B, 64x32: server CPU with it", "µs/message", none, 2},
	{"signed send 128 B, 64x32: server CPU, with/without", "", ownAtMost(1.15), 2},
}

// The account of the load may send to its topic by a permission of its own.
const (
	aclAccessKey = "benchProducer"
	aclSecretKey = "benchSecret"
	aclTopic     = "BenchmarkTest" // there on every broker
	aclRules     = "accounts:\n- accessKey: " + aclAccessKey + "\n  secretKey: " + aclSecretKey + "\n  topicPerms:\n  - " + aclTopic + "=PUB\n"
	aclTurns     = 11
)

// measureACL sends the same signed messages to in and to a server with access control, in turns.
func (in *instance) measureACL(ctx context.Context, s settings, note func(string, float64)) (err error) {
	t, err := target.StartMain(target.Options{Kind: in.Kind, Brokers: []target.BrokerOptions{{
		ACL: aclRules, Conf: fileSizes,
	}}})
	if err != nil {
		return err
	}
	guarded := &instance{Target: t}
	defer func() { err = errors.Join(err, guarded.close()) }()
	var without, with, ratios []float64
	load := sendLoad{topic: aclTopic, queues: 4, connections: 64, inFlight: 32, body: 128, duration: s.phase / 2, most: 1 << 40, signed: true}
	for turn := range aclTurns + 1 {
		a, err := in.send(ctx, load)
		if err != nil {
			return err
		}
		b, err := guarded.send(ctx, load)
		if err != nil {
			return err
		}
		if turn == 0 {
			continue // warms up
		}
		x, y := a.cpuPerMessage(), b.cpuPerMessage()
		without, with, ratios = append(without, x), append(with, y), append(ratios, y/x)
	}
	slices.Sort(without)
	slices.Sort(with)
	slices.Sort(ratios) // of neighbours: what else the machine does meets both
	note(aclMetrics[0].name, without[aclTurns/2])
	note(aclMetrics[1].name, with[aclTurns/2])
	note(aclMetrics[2].name, ratios[aclTurns/2])
	return nil
}
