package store

import "rocketd/store/vfs"

// Checkpoint is what ROOT/checkpoint says, for who looks at a store that is not open.
type Checkpoint struct {
	PhysicMsgTimestamp, LogicsMsgTimestamp, IndexMsgTimestamp int64 // ms, the official part
	// Dispatched is the commit-log offset before which everything is durable in log, queues and index; -1 when the file
	// does not say: it was last written by the official broker.
	Dispatched int64
}

// ReadCheckpoint reads a checkpoint file; one that is missing or too short says zeros and -1.
func ReadCheckpoint(fsys vfs.FS, name string) (Checkpoint, error) {
	c, err := readCheckpoint(fsys, name)
	return Checkpoint{c.physicMsgTimestamp, c.logicsMsgTimestamp, c.indexMsgTimestamp, c.dispatched}, err
}

// MinTimestamp is the store timestamp (ms) that a file's first record must not exceed for recovery after a crash to
// begin there, by the official rule.
func (c Checkpoint) MinTimestamp(withIndex bool) int64 {
	own := checkpoint{physicMsgTimestamp: c.PhysicMsgTimestamp, logicsMsgTimestamp: c.LogicsMsgTimestamp, indexMsgTimestamp: c.IndexMsgTimestamp}
	return own.minTimestamp(withIndex)
}
