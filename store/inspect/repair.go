package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"rocketd/protocol/message"
	"rocketd/store/vfs"
)

// ErrRunning: a broker has the store open.
var ErrRunning = errors.New("a broker is running on this store; stop it first")

// RepairOptions says how Repair goes about it.
type RepairOptions struct {
	DryRun bool // say what would be done, and do nothing
	// Fill replaces what is damaged within the log, records with a wrong checksum too, by filler that enters no queue, and
	// missing files by empty ones. Without it such damage is left: the records behind it can be read, but a recovery that
	// comes upon it ends the log there.
	Fill bool
	// Restore stores the messages that a recovery found behind a damaged place and put aside (damaged-<log offset>) again,
	// as new ones. Each is stored once, however often it is asked for.
	Restore bool
	Step    func(Step) // is told each step when it is done. May be nil
}

// Step is one thing that Repair does.
type Step struct {
	What  string `json:"what"`
	File  string `json:"file"`
	Text  string `json:"text"`
	Error string `json:"error,omitempty"`
}

// String is the step on one line.
func (s Step) String() string {
	text := s.What + " " + s.File + ": " + s.Text
	if s.Error != "" {
		text += ": FAILED: " + s.Error
	}
	return text
}

// RepairReport is what Repair did.
type RepairReport struct {
	Dir    string  `json:"dir"`
	DryRun bool    `json:"dryRun"`
	Found  *Report `json:"found"`
	Steps  []Step  `json:"steps"`
	Left   *Report `json:"left,omitempty"` // what Verify finds after it; nil with DryRun
}

// repair is one Repair under way.
type repair struct {
	o      Options
	r      RepairOptions
	report *RepairReport
	failed error // of the last step that failed
	locked io.Closer
}

// Repair mends a store that no broker has open, whose lock it holds meanwhile:
//
//  1. What is damaged within the log is filled, if asked for; files get their length, records the queue offset that
//     their queue gives them.
//  2. The log ends behind its last whole record: what is behind is zeroed, files behind it are removed.
//  3. Queues with findings are made anew from the log, beside the old ones, which they then replace. A queue whose
//     records have all expired keeps its last entry, so that its offsets go on. Its units in consumequeue_ext go, its entries
//     have their tagsCode themselves; a broken chain of units is ended where it breaks.
//  4. An index with findings is made anew from the log, likewise.
//  5. Files of configuration that can't be read are replaced by their .bak and kept as .damaged.
//  6. A checkpoint that promises what is not there is removed.
//  7. What recovery has put aside is stored again, if asked for.
//
// What the next start mends by itself (after a crash) is left to it.
func Repair(o Options, r RepairOptions) (*RepairReport, error) {
	p := &repair{o: o, r: r, report: &RepairReport{Dir: path.Clean(o.Root), DryRun: r.DryRun, Steps: []Step{}}}
	d, err := Open(o)
	if err != nil {
		return nil, err
	}
	if d.running {
		return nil, fmt.Errorf("%s: %w", o.Root, ErrRunning)
	}
	if !r.DryRun {
		if err := p.lock(d); err != nil {
			return nil, err
		}
		defer func() { p.unlock() }()
	}
	v, err := p.verify()
	if err != nil {
		return nil, err
	}
	p.report.Found = v.report
	p.fill(v)
	p.renumber(v)
	p.lengths(v)
	p.cut(v)
	if len(p.report.Steps) > 0 && !r.DryRun { // queues may have entries of what is gone
		if v, err = p.verify(); err != nil {
			return nil, err
		}
	}
	p.rebuildQueues(v)
	p.endChains(v)
	p.rebuildIndex(v)
	p.restoreConfig(v)
	p.dropCheckpoint(v)
	if r.Restore && p.failed == nil {
		if !r.DryRun { // the store is opened, and takes the lock itself
			p.unlock()
		}
		p.restore(v)
		if !r.DryRun {
			if err := p.lock(d); err != nil {
				return nil, err
			}
		}
	}
	if r.DryRun {
		return p.report, nil
	}
	if v, err = p.verify(); err != nil {
		return nil, err
	}
	p.report.Left = v.report
	return p.report, p.failed
}

// lock takes the store's lock, unlock gives it back.
func (p *repair) lock(d *Dir) (err error) {
	if p.locked, err = p.o.FS.Lock(d.path("lock"), []byte("lock")); errors.Is(err, vfs.ErrLocked) {
		err = fmt.Errorf("%s: %w", p.o.Root, ErrRunning)
	}
	return err
}

func (p *repair) unlock() {
	if p.locked != nil {
		p.locked.Close()
		p.locked = nil
	}
}

// verify looks through the store as it is now.
func (p *repair) verify() (*verify, error) {
	d, err := Open(p.o)
	if err != nil {
		return nil, err
	}
	d.running = false // it is this repair that holds the lock
	return d.verify(0)
}

// step does one thing, unless nothing is to be done in earnest, and tells it.
func (p *repair) step(s Step, do func() error) {
	if !p.r.DryRun {
		if err := do(); err != nil {
			s.Error = err.Error()
			p.failed = fmt.Errorf("%s %s: %w", s.What, s.File, err)
		}
	}
	p.note(s)
}

// note tells a step.
func (p *repair) note(s Step) {
	p.report.Steps = append(p.report.Steps, s)
	if p.r.Step != nil {
		p.r.Step(s)
	}
}

// write opens a file, lets it be changed and syncs it.
func (p *repair) write(name string, change func(f vfs.File) error) error {
	f, err := p.o.FS.Open(name)
	if err != nil {
		return err
	}
	err = change(f)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// renumber sets what is wrong in the headers of records, and of the blank ones at the end of files.
func (p *repair) renumber(v *verify) {
	const queueOffsetAt = 20
	d, l := v.d, &v.d.log
	for _, r := range v.damage.renumbered {
		f := l.files[l.find(r.at)]
		text := fmt.Sprintf("the record at %d gets queue offset %d, as its queue has it", r.at-f.start, r.queueOffset)
		p.step(Step{What: "renumber", File: d.short(f.path), Text: text}, func() error {
			return p.write(f.path, func(file vfs.File) error {
				_, err := file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(r.queueOffset)), r.at-f.start+queueOffsetAt)
				return err
			})
		})
	}
	for _, at := range v.damage.blanks {
		i := l.find(at)
		f := l.files[i]
		p.step(Step{What: "renumber", File: d.short(f.path), Text: fmt.Sprintf("the blank record at %d gets the size of the rest of the file", at-f.start)}, func() error {
			return p.write(f.path, func(file vfs.File) error {
				_, err := file.WriteAt(message.AppendBlank(nil, int(l.fileEnd(i)-at)), at-f.start)
				return err
			})
		})
	}
}

// lengths gives the files of the log their length: one that is short gets zeros, one that is long loses them.
func (p *repair) lengths(v *verify) {
	d, l := v.d, &v.d.log
	for i, f := range l.files {
		last := i == len(l.files)-1
		if f.length == l.fileSize || f.start%l.fileSize != 0 || !last && l.files[i+1].start-f.start < l.fileSize || f.length == 0 && last && d.abort {
			continue
		}
		if f.length > l.fileSize {
			plain, err := d.zerosFrom(f.path, l.fileSize)
			if err != nil || !plain {
				continue
			}
		}
		p.step(Step{What: "set the length", File: d.short(f.path), Text: fmt.Sprintf("from %d to %d bytes", f.length, l.fileSize)}, func() error {
			return p.write(f.path, func(f vfs.File) error { return f.Truncate(l.fileSize) })
		})
	}
}

// zerosFrom tells whether a file has only zeros from an offset on.
func (d *Dir) zerosFrom(name string, at int64) (bool, error) {
	in, err := d.fs.OpenRead(name)
	if err != nil {
		return false, err
	}
	defer in.Close()
	b := make([]byte, readStep)
	for {
		n, err := in.ReadAt(b, at)
		if !zeros(b[:n]) {
			return false, nil
		}
		if at += int64(n); err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// cut ends the log behind its last whole record.
func (p *repair) cut(v *verify) {
	d, l, s := v.d, &v.d.log, &v.scan
	end := min(s.good, s.end)
	if len(l.files) == 0 || end == s.end && s.dirty.from == s.dirty.to && len(s.behindEnd) == 0 {
		return
	}
	first := l.find(end)
	if first < 0 {
		first = len(l.files) - 1
	}
	for i := len(l.files) - 1; i > first; i-- {
		f := l.files[i]
		plain, err := d.zerosFrom(f.path, 0)
		if err == nil && plain { // made in advance
			continue
		}
		p.step(Step{What: "remove", File: d.short(f.path), Text: fmt.Sprintf("the file lies behind the end of the log, %d", end)}, func() error {
			return errors.Join(d.fs.Remove(f.path), d.fs.SyncDir(l.dir))
		})
	}
	f := l.files[first]
	plain, err := d.zerosFrom(f.path, end-f.start)
	if err == nil && plain {
		return
	}
	text := fmt.Sprintf("zeros from offset %d to the end of the file: the log ends at %d", end-f.start, end)
	if end < s.end {
		text += fmt.Sprintf("; the last %d bytes of its records have a wrong checksum", s.end-end)
	}
	p.step(Step{What: "cut the tail", File: d.short(f.path), Text: text}, func() error {
		return p.write(f.path, func(file vfs.File) error {
			info, err := file.Stat()
			if err != nil {
				return err
			}
			return file.Zero(end-f.start, info.Size()-(end-f.start))
		})
	})
}

// restoreConfig puts the .bak in the place of files that can't be read.
func (p *repair) restoreConfig(v *verify) {
	for _, c := range v.damage.configs {
		name := v.d.path("config/" + c.name)
		p.step(Step{What: "restore", File: "config/" + c.name, Text: "from its .bak; what was there is kept as .damaged"}, func() error {
			files := vfs.Files{FS: p.o.FS}
			data, err := files.ReadFile(name + ".bak")
			if err != nil {
				return err
			}
			if err := files.WriteFile(name+".tmp", data); err != nil {
				return err
			}
			there, err := v.d.exists(name)
			if err == nil && there {
				err = files.Rename(name, name+".damaged")
			}
			if err != nil {
				return err
			}
			return errors.Join(files.Rename(name+".tmp", name), files.SyncDir(path.Dir(name)))
		})
	}
}

// dropCheckpoint removes a checkpoint that is not to be believed.
func (p *repair) dropCheckpoint(v *verify) {
	if !v.damage.checkpoint {
		return
	}
	p.step(Step{What: "remove", File: "checkpoint", Text: "the next start makes a new one"}, func() error {
		return errors.Join(p.o.FS.Remove(v.d.path("checkpoint")), p.o.FS.SyncDir(v.d.o.Root))
	})
}

const (
	// maxFiller is the largest filler record.
	maxFiller = 1 << 20
	fillText  = "filled by rocketd store repair"
)

// fill puts filler where the log is damaged.
func (p *repair) fill(v *verify) {
	if !p.r.Fill {
		return
	}
	d, l := v.d, &v.d.log
	for _, gap := range v.damage.missing {
		for at := gap.from; at < gap.to; at += l.fileSize {
			name := path.Join(l.dir, fmt.Sprintf("%020d", at))
			p.step(Step{What: "make", File: d.short(name), Text: "an empty file in the place of the one that is missing; its messages are lost"}, func() error {
				f, err := d.fs.Create(name)
				if err != nil {
					return err
				}
				err = errors.Join(f.Truncate(l.fileSize), f.Close())
				if err == nil {
					err = p.write(name, func(f vfs.File) error {
						_, err := f.WriteAt(message.AppendBlank(nil, int(l.fileSize)), 0)
						return err
					})
				}
				return errors.Join(err, d.fs.SyncDir(l.dir))
			})
		}
	}
	for n, h := range slices.Concat(v.damage.holes, v.damage.badRecords) {
		if n >= len(v.damage.holes) && h.from >= v.scan.good {
			continue // the tail, which is cut
		}
		i := l.find(h.from)
		f := l.files[i]
		text := fmt.Sprintf("%d bytes from offset %d on; the messages that were there are lost", h.to-h.from, h.from-f.start)
		p.step(Step{What: "fill", File: d.short(f.path), Text: text}, func() error {
			return p.write(f.path, func(file vfs.File) error { return fillHole(file, f.start, h, l.fileEnd(i)) })
		})
	}
}

// fillHole writes filler records, or a blank record when the hole reaches to the end of the file.
func fillHole(file vfs.File, start int64, h hole, fileEnd int64) error {
	if h.to == fileEnd {
		_, err := file.WriteAt(message.AppendBlank(nil, int(fileEnd-h.from)), h.from-start)
		return err
	}
	if h.to-h.from < message.MinRecordSize {
		return fmt.Errorf("%d bytes are too few for a record", h.to-h.from)
	}
	for at := h.from; at < h.to; {
		size := min(h.to-at, maxFiller)
		if rest := h.to - at - size; rest > 0 && rest < message.MinRecordSize {
			size -= message.MinRecordSize
		}
		// As a rolled-back message it enters neither queue nor index, at any broker.
		m := message.Message{SysFlag: message.TransactionRollback, StoreTimestamp: h.timestamp, BornTimestamp: h.timestamp, PhyOffset: at,
			Body: make([]byte, size-message.MinRecordSize)}
		copy(m.Body, fillText)
		if _, err := file.WriteAt(message.AppendRecord(nil, &m), at-start); err != nil {
			return err
		}
		at += size
	}
	return nil
}
