package protocol

import (
	"fmt"
	"strconv"
)

// Versions by which a server decides what it may ask of a client, and what it tells one: ordinals of the official MQVersion.
const (
	V3_0_7_SNAPSHOT int32 = 28 // knows RESET_CONSUMER_CLIENT_OFFSET and GET_CONSUMER_STATUS_FROM_CLIENT
	V3_0_11         int32 = 37 // of a broker: registers with a list of filter servers
	V3_1_8_SNAPSHOT int32 = 62 // knows GET_CONSUMER_RUNNING_INFO and CONSUME_MESSAGE_DIRECTLY

	V3_4_9 int32 = 121 // says how often a message may come again
	V4_9_4 int32 = 401 // reads routes in standard JSON

	V5_0_0_SNAPSHOT int32 = 412 // wants pullOffset in the answer to GET_CONSUME_STATS
)

// firstVersions are the names of the versions before V3_0_1_SNAPSHOT.
var firstVersions = [...]string{
	"V3_0_0_SNAPSHOT", "V3_0_0_ALPHA1", "V3_0_0_BETA1", "V3_0_0_BETA2", "V3_0_0_BETA3", "V3_0_0_BETA4", "V3_0_0_BETA5",
	"V3_0_0_BETA6_SNAPSHOT", "V3_0_0_BETA6", "V3_0_0_BETA7_SNAPSHOT", "V3_0_0_BETA7", "V3_0_0_BETA8_SNAPSHOT",
	"V3_0_0_BETA8", "V3_0_0_BETA9_SNAPSHOT", "V3_0_0_BETA9", "V3_0_0_FINAL",
}

// OldVersionName is MQVersion's name of a version before V3_1_9_SNAPSHOT, the number of a later one: those that a
// remark refuses as too old. From V3_0_1 on each version is a snapshot and a release; 3.1 follows 3.0.15.
func OldVersionName(v int32) string {
	const first, minor31, end = 16, 46, 64 // V3_0_1_SNAPSHOT, V3_1_0_SNAPSHOT, V3_1_9_SNAPSHOT
	var name string
	switch {
	case v < 0 || v >= end:
		return strconv.Itoa(int(v))
	case v < first:
		return firstVersions[v]
	case v < minor31:
		name = fmt.Sprintf("V3_0_%d", (v-first)/2+1)
	default:
		name = fmt.Sprintf("V3_1_%d", (v-minor31)/2)
	}
	if v%2 == 0 {
		name += "_SNAPSHOT"
	}
	return name
}
