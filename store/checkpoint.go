package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"rocketd/store/vfs"
)

// The checkpoint file, 4096 bytes:
//
//	 0           8           16          24      64        72                    96           104         112
//	+-----------+-----------+-----------+-------+---------+---------------------+------------+-----------+-------+
//	| physic    | logics    | index     | zeros | magic   | the three           | dispatched | last      | CRC   |
//	| timestamp | timestamp | timestamp |       | 8 bytes | timestamps again    | int64      | record    | 4     |
//	+-----------+-----------+-----------+-------+---------+---------------------+------------+-----------+-------+
//
// The first 24 bytes are the official ones: store timestamps (ms) of the newest message that is durable in the commit
// log, in the consume queues and in the index. The official broker neither reads nor writes the rest. Ours: everything
// before the commit-log offset dispatched is durable in all three, so recovery need not begin at the start of a file; the
// offset of the last record before it serves to see whether the log is still that one.
// Once the official broker has written the file the timestamps differ, and the offset is not believed.
const (
	checkpointSize = 4096
	checkpointOwn  = 64
	checkpointEnd  = 116
)

var checkpointMagic = [8]byte{'r', 'o', 'c', 'k', 'e', 't', 'd', '1'}

// checkpoint is what the file says; dispatched and lastRecord are -1 when it says nothing that holds.
type checkpoint struct {
	physicMsgTimestamp int64
	logicsMsgTimestamp int64
	indexMsgTimestamp  int64
	dispatched         int64
	lastRecord         int64
}

// noCheckpoint is what is known without a file.
var noCheckpoint = checkpoint{dispatched: -1, lastRecord: -1}

// minTimestamp is the store timestamp that a file's first record must not exceed for recovery to begin there
// (StoreCheckpoint#getMinTimestamp of 4.9.8).
func (c *checkpoint) minTimestamp(withIndex bool) int64 {
	const margin = 3000
	oldest := max(0, min(c.physicMsgTimestamp, c.logicsMsgTimestamp)-margin)
	if withIndex {
		oldest = min(oldest, c.indexMsgTimestamp)
	}
	return oldest
}

func (c *checkpoint) encode() []byte {
	be := binary.BigEndian
	b := make([]byte, checkpointEnd)
	for i, t := range []int64{c.physicMsgTimestamp, c.logicsMsgTimestamp, c.indexMsgTimestamp} {
		be.PutUint64(b[8*i:], uint64(t))
	}
	own := b[checkpointOwn:]
	copy(own, checkpointMagic[:])
	copy(own[8:], b[:24])
	be.PutUint64(own[32:], uint64(c.dispatched))
	be.PutUint64(own[40:], uint64(c.lastRecord))
	be.PutUint32(own[48:], crc32.ChecksumIEEE(own[:48]))
	return b
}

func decodeCheckpoint(b []byte) checkpoint {
	be := binary.BigEndian
	c := checkpoint{
		physicMsgTimestamp: int64(be.Uint64(b)),
		logicsMsgTimestamp: int64(be.Uint64(b[8:])),
		indexMsgTimestamp:  int64(be.Uint64(b[16:])),
		dispatched:         -1,
		lastRecord:         -1,
	}
	own := b[checkpointOwn:]
	if string(own[:8]) == string(checkpointMagic[:]) && string(own[8:32]) == string(b[:24]) &&
		be.Uint32(own[48:]) == crc32.ChecksumIEEE(own[:48]) {
		c.dispatched = int64(be.Uint64(own[32:]))
		c.lastRecord = int64(be.Uint64(own[40:]))
	}
	return c
}

// readCheckpoint reads the file; without one, or with one too short, recovery begins at the first file.
func readCheckpoint(fsys vfs.FS, name string) (checkpoint, error) {
	f, err := fsys.OpenRead(name)
	if errors.Is(err, fs.ErrNotExist) {
		return noCheckpoint, nil
	}
	if err != nil {
		return checkpoint{}, fmt.Errorf("store: %w", err)
	}
	defer f.Close()
	var b [checkpointEnd]byte
	if _, err := f.ReadAt(b[:], 0); err != nil && err != io.EOF {
		return checkpoint{}, fmt.Errorf("store: reading %s: %w", name, err)
	}
	return decodeCheckpoint(b[:]), nil
}

// takeCheckpoint reads the file. One that can't be read is put aside, and the store recovered as without one; but one that
// only this user can't read is an error.
func (s *Store) takeCheckpoint() (checkpoint, error) {
	name := s.path("checkpoint")
	c, err := readCheckpoint(s.o.FS, name)
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return c, err
	}
	s.o.Log.Error("THE CHECKPOINT CAN'T BE READ: the store is recovered as without one", "error", err, "keptAs", name+".damaged")
	if err := s.o.FS.Rename(name, name+".damaged"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("store: %w; remove it", err)
	}
	return noCheckpoint, nil
}

// writeCheckpoint writes the file durably, in place: what changes lies in one sector.
func writeCheckpoint(fsys vfs.FS, name, dir string, c checkpoint) error {
	f, err := fsys.Open(name)
	made := false
	if errors.Is(err, fs.ErrNotExist) {
		made = true
		if f, err = fsys.Create(name); err == nil {
			err = f.Truncate(checkpointSize)
		}
	}
	if err == nil {
		_, err = f.WriteAt(c.encode(), 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if f != nil {
		if e := f.Close(); err == nil {
			err = e
		}
	}
	if err == nil && made {
		err = fsys.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("store: writing %s: %w", name, err)
	}
	return nil
}
