package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"

	"rocketd/protocol/message"
)

// DefaultFindings is how many findings of each kind a report holds unless told otherwise.
const DefaultFindings = 50

// verify is one Verify under way.
type verify struct {
	d      *Dir
	report *Report
	damage damage

	recoverFrom int64 // what is behind this may lack in queues and index; math.MaxInt64: nothing may
	pending     int64 // records that lack
	stale       int64 // entries that the next start drops
	lost        int64 // queue offsets whose messages were lost in the past

	units  map[*queue]unitChunk // what was read last; see unitBytes
	config configData
	index  indexCheck
	scan   scanned
	newest int64 // store timestamp met so far
	beyond bool  // someone knows of records behind the end of the log
}

// damage is what Verify tells Repair.
type damage struct {
	holes      []hole // in the log, with records behind
	badRecords []hole // records whose checksum, topic or queue offset is wrong
	renumbered []renumbered
	blanks     []int64 // blank records of a wrong size
	missing    []span  // files of the log
	queues     []*queue
	chains     []brokenChain
	index      bool
	configs    []configFile // that have a good .bak
	checkpoint bool
}

// hole is a part of the log that is no good, and the store timestamp that a record in its place would have.
type hole struct {
	span
	timestamp int64
}

// renumbered is a record that has another queue offset than its queue gives it.
type renumbered struct{ at, queueOffset int64 }

// Verify looks through the whole store. limit is how many findings of each kind the report holds, 0 is DefaultFindings.
// An error says that something could not be read.
func (d *Dir) Verify(limit int) (*Report, error) {
	v, err := d.verify(limit)
	if err != nil {
		return nil, err
	}
	return v.report, nil
}

func (d *Dir) verify(limit int) (*verify, error) {
	if limit <= 0 {
		limit = DefaultFindings
	}
	v := &verify{d: d, report: &Report{
		Dir: d.o.Root, CleanStop: !d.abort, Running: d.running, Findings: []Finding{}, Notes: []string{}, Counts: map[string]int{}, limit: limit,
	}}
	v.recoverFrom = math.MaxInt64
	if d.abort || d.running {
		from, err := d.recoveryStart()
		if err != nil {
			return nil, err
		}
		v.recoverFrom = from
	}
	if d.running {
		v.report.note("A BROKER IS RUNNING ON THIS STORE: what it writes meanwhile may look like damage")
	} else if d.abort {
		v.report.note("the broker was not stopped in order: the next start recovers from log offset %d on", v.recoverFrom)
	}
	for _, check := range []func() error{v.checkConfig, v.checkLogFiles, v.checkRecords, v.checkQueues, v.checkUnits, v.checkIndex, v.checkTail, v.checkCheckpoint, v.checkOffsets} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	aside, err := d.asideFolders(asidePrefix)
	if err != nil {
		return nil, err
	}
	r := v.report
	for _, a := range aside {
		r.note("%s holds records that a recovery found behind a damaged place; repair --restore stores them again", a.Dir)
	}
	r.MinPhyOffset, r.MaxPhyOffset, r.Records, r.Queues = d.log.min(), v.scan.end, v.scan.found, d.queues.len()
	if v.pending > 0 {
		r.note("%d records are not yet in their queues or in the index; the next start adds them", v.pending)
	}
	if v.stale > 0 {
		r.note("%d entries of queues or index will be dropped, or made again, by the next start", v.stale)
	}
	if v.lost > 0 {
		r.note("%d queue offsets have blank entries and no messages: these were lost, which was dealt with", v.lost)
	}
	return v, nil
}

// isPending tells whether the next start dispatches the record at a log offset again.
func (v *verify) isPending(phyOffset int64) bool { return phyOffset >= v.recoverFrom }

// recoveryStart is where the next start begins to dispatch again.
func (d *Dir) recoveryStart() (int64, error) {
	l := &d.log
	if from := d.checkpoint.Dispatched; from >= l.min() && from < l.end() {
		i := l.find(from)
		r, err := d.readLog(max(i, 0))
		if err != nil {
			return 0, err
		}
		defer r.close()
		var not *notRecord
		if _, _, err := r.record(from); err == nil || errors.As(err, &not) && (not.blank || not == errZeros) {
			return from, nil
		}
	}
	c := d.o.Config
	newest := d.checkpoint.MinTimestamp(c != nil && c.MessageIndexEnable && c.MessageIndexSafe)
	for i := len(l.files) - 1; i >= 0; i-- {
		t, err := d.firstTimestamp(i)
		if err != nil {
			return 0, err
		}
		if t != 0 && t <= newest {
			return l.files[i].start, nil
		}
	}
	return l.min(), nil
}

// firstTimestamp is the store timestamp of a file's first record, 0 when there is none.
func (d *Dir) firstTimestamp(i int) (int64, error) {
	var b [message.MinRecordSize + 24]byte
	if err := d.readAt(d.log.files[i].path, b[:], 0); err != nil {
		return 0, err
	}
	if binary.BigEndian.Uint32(b[4:]) != message.MagicCode {
		return 0, nil
	}
	return message.Record(b[:]).StoreTimestamp(), nil
}

// logFinding is a finding at an offset of the log.
func (v *verify) logFinding(kind string, at int64, text string) Finding {
	l := &v.d.log
	f := Finding{Kind: kind, PhyOffset: &at, Text: text}
	if i := l.find(at); i >= 0 {
		f.File, f.Offset = v.d.short(l.files[i].path), at-l.files[i].start
	}
	return f
}

// checkLogFiles looks at names and sizes.
func (v *verify) checkLogFiles() error {
	d, l := v.d, &v.d.log
	for _, name := range l.stray {
		v.report.note("%s is not a file of the commit log", d.short(name))
	}
	for i, f := range l.files {
		finding := Finding{File: d.short(f.path)}
		switch {
		case l.fileSize > 0 && f.start%l.fileSize != 0:
			finding.Kind, finding.Text = LogFileName, fmt.Sprintf("its offset is not a multiple of the file size %d", l.fileSize)
			v.report.add(finding)
		case f.length == 0 && i == len(l.files)-1 && d.abort:
			v.report.note("%s is empty: its creation was cut off; the next start removes it", d.short(f.path))
		case f.length != l.fileSize && !(d.running && f.length == 0):
			finding.Kind, finding.Offset = LogFileSize, min(f.length, l.fileSize)
			finding.Text = fmt.Sprintf("it has %d bytes, not %d; no broker starts with it", f.length, l.fileSize)
			v.report.add(finding)
		}
	}
	return nil
}

// checkRecords goes through the log.
func (v *verify) checkRecords() error {
	d := v.d
	v.index.start(v)
	var err error
	v.scan, err = d.scan(0, "verify the log", visitor{
		record: v.record,
		damage: func(file string, s span, cause string) error {
			if cause == "" {
				cause = "no record"
			}
			v.damage.holes = append(v.damage.holes, hole{s, max(0, v.newest)})
			v.report.add(v.logFinding(RecordDamaged, s.from, fmt.Sprintf("%d bytes hold no record (%s); there are records behind them", s.to-s.from, cause)))
			return nil
		},
		missing: func(s span) error {
			v.damage.missing = append(v.damage.missing, s)
			for at := s.from; at < s.to && d.log.fileSize > 0; at += d.log.fileSize {
				v.report.add(Finding{Kind: LogFileMissing, File: d.short(path.Join(d.log.dir, fmt.Sprintf("%020d", at))), PhyOffset: &at,
					Text: "the file is missing between two others; no broker starts without it"})
			}
			return nil
		},
		blank: func(_ string, at, size, rest int64) error {
			v.damage.blanks = append(v.damage.blanks, at)
			v.report.add(v.logFinding(BlankRecord, at, fmt.Sprintf("the blank record says that %d bytes are left, there are %d", size, rest)))
			return nil
		},
	})
	if err != nil {
		return err
	}
	return nil
}

// checkTail judges what stands behind the end of the log. After an orderly stop it is left of an earlier recovery, unless
// someone knows of records there.
func (v *verify) checkTail() error {
	s, d := &v.scan, v.d
	if own := d.checkpoint.Dispatched; own >= 0 && own != s.end {
		v.beyond = true
	}
	if n := s.dirty.to - s.dirty.from; n > 0 && !d.abort && !v.beyond {
		v.report.note("the %d bytes behind the end of the log, %d, are not all zeros: left of an earlier recovery, and harmless", n, s.end)
	} else if n > 0 {
		cause := s.cause
		if cause == "" {
			cause = "zeros, then other bytes"
		}
		v.report.add(v.logFinding(TornTail, s.end, fmt.Sprintf("the log ends here, but %d bytes up to %d are not all zeros (%s)", n, s.dirty.to, cause)))
	}
	for _, i := range s.behindEnd {
		v.report.add(v.logFinding(TornTail, d.log.files[i].start, fmt.Sprintf("the file lies behind the end of the log, %d, and is not empty", s.end)))
	}
	return nil
}

// record checks one record.
func (v *verify) record(at int64, r message.Record, crc error) error {
	v.newest = max(v.newest, r.StoreTimestamp())
	if crc != nil {
		f := v.logFinding(RecordCRC, at, strings.TrimPrefix(crc.Error(), "message: "))
		id, n := r.QueueId(), r.QueueOffset()
		f.Topic, f.QueueId, f.QueueOffset = strings.Clone(r.Topic()), &id, &n
		v.report.add(f)
		v.bad(at, r)
	}
	if err := v.index.record(at, r); err != nil {
		return err
	}
	return v.queueRecord(at, r)
}

// bad notes a record that a fill replaces.
func (v *verify) bad(at int64, r message.Record) {
	v.damage.badRecords = append(v.damage.badRecords, hole{span{at, at + int64(r.Size())}, r.StoreTimestamp()})
}
