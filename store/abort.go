package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"rocketd/protocol/message"
)

// The abort file is there while a store is open: who finds it recovers as after a crash.

// writeAbort makes the empty file that tells the next start, ours or the official broker's, that this one was
// not closed.
func (s *Store) writeAbort() error {
	f, err := s.o.FS.Create(s.path("abort"))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = s.o.FS.SyncDir(s.Config().StorePathRootDir)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// mark makes the abort file of this session. Without room for it the store opens, and takes nothing until there is some.
func (s *Store) mark() error {
	err := s.writeAbort()
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	s.clean.unmarked.Store(true)
	s.o.Log.Error("THE DISK IS FULL: messages are served, sends are refused until there is room for the file abort; make room",
		"folder", s.Config().StorePathRootDir, "error", err)
	return nil
}

// markLate makes the abort file for which there was no room.
func (s *Store) markLate() {
	if s.clean.unmarked.Load() && s.writeAbort() == nil {
		s.clean.unmarked.Store(false)
		s.o.Log.Info("the disk has room for the file abort")
	}
}

func (s *Store) removeAbort() error {
	if err := s.o.FS.Remove(s.path("abort")); err != nil && !s.clean.unmarked.Load() {
		return fmt.Errorf("store: %w", err)
	}
	if err := s.o.FS.SyncDir(s.Config().StorePathRootDir); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// notStopped tells whether the store was not closed although there is no abort file: somebody has removed it, or a copy was
// made without it. A stop leaves no record behind what the checkpoint says is dispatched; a broker that was killed leaves
// some that lack in queues which had few messages. The official broker's checkpoint does not say, but it has one.
func (s *Store) notStopped() bool {
	from := s.checkpoint.dispatched
	if s.checkpoint == noCheckpoint {
		from = s.log.MinOffset()
	}
	if from < 0 || !s.recordBehind(from) {
		return false
	}
	s.o.Log.Error("THE FILE abort IS MISSING, BUT THE STORE WAS NOT CLOSED: it is recovered as after a crash", "folder", s.Config().StorePathRootDir, "checkpoint", from)
	return true
}

// recordBehind tells whether the log has a record at an offset, or in a later file. Before the log is recovered.
func (s *Store) recordBehind(from int64) bool {
	b, err := s.log.Read(make([]byte, 0, message.MinRecordSize), from, message.MinRecordSize)
	if r := message.Record(b); err == nil && binary.BigEndian.Uint32(b[4:]) == message.MagicCode && r.PhyOffset() == from && r.StoreTimestamp() > 0 {
		return true
	}
	for _, f := range s.log.FileStarts() {
		if f.Offset > from && f.FirstTimestamp != 0 {
			return true
		}
	}
	return false
}
