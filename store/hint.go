package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"time"

	"rocketd/store/vfs"
)

// ROOT/rocketd-queues remembers where each queue ends, so that the next start need not look into hundreds of thousands
// of folders, and sees when a queue ends earlier: its last file, or all of it, has gone or is damaged. It is ours alone and
// only a hint: the official broker ignores it, and it may be removed.
//
//	 0       8        16         24          32                72               112    116
//	+-------+--------+----------+-----------+-----------------+----------------+------+--------------------+
//	| magic | time   | lock's   | file size | boot id,        | checkpoint:    | CRC  | ends of the queues |
//	|       | (ns)   | time     | of queues | 40 bytes        | 5 int64        | 4    | consumequeue/ends  |
//	+-------+--------+----------+-----------+-----------------+----------------+------+--------------------+
//
// The CRC is that of all the rest. The hint is believed only when
//
//   - the checkpoint file says what it said then: the official broker has not written it since;
//   - the lock file has not been written since the store that left the hint was opened: any broker writes it when it
//     opens the directory, and the tools of ours that change something do;
//   - the queues' files have the same size configured;
//   - the store was closed, or the system has not been started since: then nothing that was written is lost, and a file
//     that was written behind the hint shows it by its time.
const (
	hintName   = "rocketd-queues"
	hintHeader = 116
	// hintAbove is the number of queues from which on the hint spares looking into them. Fewer are looked into at once,
	// which finds more damage.
	hintAbove = 1024
	// hintMost bounds the file (bytes).
	hintMost = 1 << 30
)

var hintMagic = [8]byte{'r', 'o', 'c', 'k', 'q', 'u', 'e', '1'}

// hintState is what the hint file says. Owned by Open, then by who holds flushing.
type hintState struct {
	lockTime int64 // of this session's lock file, ns
	written  bool  // the file is of this session and of checkpoint
	of       checkpoint
}

// hint is a hint that is believed: the whole file; nil: there is none.
type hint []byte

// ends is what it says of the queues, at is when.
func (h hint) ends() []byte  { return h[min(len(h), hintHeader):] }
func (h hint) at() time.Time { return time.Unix(0, int64(h.uint64(8))) }

func (h hint) uint64(i int) uint64 {
	if len(h) < i+8 {
		return 0
	}
	return binary.BigEndian.Uint64(h[i:])
}

// lockTime is when the lock file was written last (ns); 0 when it is not known.
func (s *Store) lockTime() int64 {
	info, err := s.o.FS.Stat(s.path("lock"))
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// bootId names the system's running time since it was started; "" when it is not known.
func (s *Store) bootId() string {
	if f, ok := s.o.FS.(interface{ BootID() string }); ok {
		return f.BootID()
	}
	return ""
}

// readHint returns the hint if it can be believed, else nil. lockTime is what it was before this session.
func (s *Store) readHint(crashed bool, lockTime int64) hint {
	b, err := readHintFile(s.o.FS, s.path(hintName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.checkHint(b, crashed, lockTime)
	}
	if err != nil {
		s.o.Log.Info("the hint of the queues' ends is not used: all of them are looked into", "reason", err)
		return nil
	}
	return b
}

// restampHint makes a believed hint one of this session, whose lock file is newer, and of what recovery has made of the
// checkpoint: a broker that is killed before its first checkpoint starts as quickly again. What recovery and this session
// write into the queues' files shows by their times.
func (s *Store) restampHint(h hint) {
	known := s.queues.Hinted()
	if known == 0 || s.checkpoint.dispatched < 0 || uint64(s.checkpoint.dispatched) != h.uint64(72+3*8) {
		return
	}
	s.encodeHint(h[:0], h.uint64(8), s.hint.lockTime, s.checkpoint)
	binary.BigEndian.PutUint32(h[112:], hintCRC(h))
	f, err := s.o.FS.Open(s.path(hintName))
	if err == nil {
		_, err = f.WriteAt(h[:hintHeader], 0)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.o.Log.Warn("the hint of the queues' ends could not be changed", "error", err)
		return
	}
	s.hint.written, s.hint.of = known >= s.queues.Len()/10*9, s.checkpoint // else Start writes a better one
}

func readHintFile(fsys vfs.FS, name string) ([]byte, error) {
	info, err := fsys.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() < hintHeader || info.Size() > hintMost {
		return nil, fmt.Errorf("%s has %d bytes", name, info.Size())
	}
	f, err := fsys.OpenRead(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, info.Size())
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	return b, nil
}

func (s *Store) checkHint(b []byte, crashed bool, lockTime int64) error {
	boot := s.bootId()
	want := s.encodeHint(nil, binary.BigEndian.Uint64(b[8:]), lockTime, s.checkpoint)
	switch {
	case string(b[:8]) != string(hintMagic[:]) || hintCRC(b) != binary.BigEndian.Uint32(b[112:]):
		return errors.New("it is damaged")
	case string(b[72:112]) != string(want[72:112]):
		return errors.New("the checkpoint is another")
	case lockTime == 0 || string(b[16:24]) != string(want[16:24]):
		return errors.New("another broker or tool has used the directory")
	case string(b[24:32]) != string(want[24:32]):
		return errors.New("mappedFileSizeConsumeQueue is another")
	case crashed && (boot == "" || string(b[32:72]) != string(want[32:72])):
		return errors.New("the system was started again since a broker crashed")
	}
	return nil
}

// encodeHint appends the header of a hint, without the CRC.
func (s *Store) encodeHint(dst []byte, at uint64, lockTime int64, c checkpoint) []byte {
	be := binary.BigEndian
	dst = append(dst, hintMagic[:]...)
	dst = be.AppendUint64(dst, at)
	dst = be.AppendUint64(dst, uint64(lockTime))
	dst = be.AppendUint64(dst, uint64(s.Config().MappedFileSizeConsumeQueue))
	var boot [40]byte
	copy(boot[:], s.bootId())
	dst = append(dst, boot[:]...)
	for _, v := range []int64{c.physicMsgTimestamp, c.logicsMsgTimestamp, c.indexMsgTimestamp, c.dispatched, c.lastRecord} {
		dst = be.AppendUint64(dst, uint64(v))
	}
	return append(dst, 0, 0, 0, 0)
}

func hintCRC(b []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(b[:112]), crc32.IEEETable, b[hintHeader:])
}

// writeHint writes the hint that belongs to the checkpoint just written, if there are queues and it says something new.
// Everything dispatched before the checkpoint's offset is in the files. A hint that could not be written is missed by nobody
// but the clock. Called by who holds flushing.
func (s *Store) writeHint() {
	if s.hint.written && s.hint.of == s.checkpoint || s.hint.lockTime == 0 || s.checkpoint.dispatched < 0 || s.queues.Len() == 0 {
		return
	}
	at := time.Now() // not the injected clock: it is compared with what the system notes of files
	b := s.encodeHint(make([]byte, 0, hintHeader+40*s.queues.Len()), uint64(at.UnixNano()), s.hint.lockTime, s.checkpoint)
	b = s.queues.AppendEnds(b)
	binary.BigEndian.PutUint32(b[112:], hintCRC(b))
	if err := s.replaceHint(b); err != nil {
		s.hint.written = false
		s.o.Log.Warn("the hint of the queues' ends was not written: the next start takes longer", "error", err)
		return
	}
	s.hint.written, s.hint.of = true, s.checkpoint
}

// renewHint writes a hint when Open has not found one to believe.
func (s *Store) renewHint() {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.writeHint()
}

// replaceHint writes the file beside the old one, which it then takes the place of. Nothing is synced here: what is
// torn by a power cut is damaged, and not believed.
func (s *Store) replaceHint(b []byte) error {
	name := s.path(hintName)
	if err := s.o.FS.Remove(name + ".tmp"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := s.o.FS.Create(name + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.o.FS.Rename(name+".tmp", name)
}

// loseShort gives up the queues that end before what a believed hint says: see LoseShort. What comes behind the checkpoint
// may be cut off at each start.
func (s *Store) loseShort(h hint) error {
	if h == nil || s.checkpoint.dispatched < 0 {
		return nil
	}
	return s.queues.LoseShort(h.ends(), s.checkpoint.dispatched)
}

// dropHint removes the hint when queues are deleted, or their files at their beginnings; the next checkpoint brings a new one.
func (s *Store) dropHint() error {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.hint.written = false
	if err := s.o.FS.Remove(s.path(hintName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
