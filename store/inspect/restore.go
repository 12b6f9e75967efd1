package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strconv"
	"strings"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/vfs"
)

const (
	// restoreRun and restoreBytes bound what is stored at once.
	restoreRun   = 64
	restoreBytes = 4 << 20
	// restoreMark is the file in a folder of records put aside that says where in the log those stored again begin.
	restoreMark = "restoring"
)

// restore stores the messages that recovery has put aside again, as new ones, behind all others. Each is stored once,
// however often it is tried and wherever it was interrupted:
//
//  1. The end of the log is noted, durably, in the folder.
//  2. The messages are appended, but for those that the log has from that place on already.
//  3. When the store has been closed, with all of them durable, the folder gets its other name.
func (p *repair) restore(v *verify) {
	folders, err := v.d.asideFolders(asidePrefix)
	if err != nil {
		p.failed = err
		return
	}
	for _, f := range folders {
		if err := v.d.asideRecords(&f, func(message.Record) error { return nil }); err != nil {
			p.note(Step{What: "restore", File: f.Dir, Text: "it can't be read", Error: err.Error()})
			p.failed = err
			continue
		}
		text := fmt.Sprintf("%d messages are stored again, as new ones", f.Messages)
		if left := f.Records - f.Messages; left > 0 {
			text += fmt.Sprintf("; %d records of transactions are left out", left)
		}
		p.step(Step{What: "restore", File: f.Dir, Text: text}, func() error { return p.restoreFolder(v, f) })
	}
}

func (p *repair) restoreFolder(v *verify, f AsideInfo) error {
	dir := v.d.path(f.Dir)
	s, err := store.Open(p.storeConfig(v), store.Options{FS: p.o.FS, Clock: v.d.o.Clock, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	s.Start()
	err = p.restoreInto(s, v, f, path.Join(dir, restoreMark))
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	name, err := p.freeName(v.d.path(restoredPrefix + strings.TrimPrefix(f.Dir, asidePrefix)))
	if err != nil {
		return err
	}
	return errors.Join(p.o.FS.Rename(dir, name), p.o.FS.SyncDir(v.d.o.Root))
}

// freeName is a name that nothing has.
func (p *repair) freeName(name string) (string, error) {
	for n, free := 2, name; ; n++ {
		there, err := (&Dir{fs: p.o.FS}).exists(free)
		if err != nil || !there {
			return free, err
		}
		free = fmt.Sprintf("%s.%d", name, n)
	}
}

// storeConfig opens the store with the sizes that its files have.
func (p *repair) storeConfig(v *verify) store.Config {
	if c := v.d.o.Config; c != nil {
		cfg := *c
		cfg.StorePathRootDir = v.d.o.Root
		return cfg
	}
	cfg := store.DefaultConfig(v.d.o.Root)
	if size := v.d.log.fileSize; size > 0 {
		cfg.MappedFileSizeCommitLog = int(size)
	}
	cfg.MappedFileSizeConsumeQueue = int(v.d.queues.perFile) * 20
	if x := &v.d.index; x.slots > 0 {
		cfg.MaxHashSlotNum, cfg.MaxIndexNum = int(x.slots), int(x.entries)
	}
	return cfg
}

// restoreInto is steps 1 and 2.
func (p *repair) restoreInto(s *store.Store, v *verify, f AsideInfo, mark string) error {
	have, err := p.restoredBefore(s, mark)
	if err != nil {
		return err
	}
	var run []*store.Put
	size := 0
	flush := func() error {
		s.Put(run)
		for _, put := range run {
			if put.Err != nil {
				return fmt.Errorf("a message of topic %s: %w", put.Message.Topic, put.Err)
			}
		}
		run, size = run[:0], 0
		return nil
	}
	again := AsideInfo{Dir: f.Dir}
	err = v.d.asideRecords(&again, func(r message.Record) error {
		m := message.Record(bytes.Clone(r)).Message()
		if id := identity(m); have[id] > 0 {
			have[id]--
			return nil
		}
		run, size = append(run, &store.Put{Message: &m, Copy: true}), size+r.Size()
		if len(run) >= restoreRun || size >= restoreBytes {
			return flush()
		}
		return nil
	})
	if err == nil && len(run) > 0 {
		err = flush()
	}
	return err
}

// restoredBefore reads the mark, or makes it, and returns the messages that the log has from there on.
func (p *repair) restoredBefore(s *store.Store, mark string) (map[[32]byte]int, error) {
	files := vfs.Files{FS: p.o.FS}
	text, err := files.ReadFile(mark)
	from, badText := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || badText != nil { // there is none, or it was cut off before anything was stored
		err := files.WriteFile(mark, strconv.AppendInt(nil, s.MaxPhyOffset(), 10))
		return nil, errors.Join(err, p.o.FS.SyncDir(path.Dir(mark)))
	}
	d, err := Open(p.o) // which has the files of the log that were made since
	if err != nil {
		return nil, err
	}
	d.running = false // it is this repair that has the store open
	have, end := map[[32]byte]int{}, s.MaxPhyOffset()
	_, err = d.scan(max(from, s.MinPhyOffset()), "look for what was restored before", visitor{record: func(at int64, r message.Record, crc error) error {
		if at >= end {
			return errStop
		}
		if crc == nil {
			have[identity(r.Message())]++
		}
		return nil
	}})
	return have, err
}
