package inspect

import (
	"errors"
	"io/fs"
	"math"

	"rocketd/protocol/message"
	"rocketd/store/consumequeue"
)

// span is a part of the log, [from, to), or of a queue.
type span struct{ from, to int64 }

// visitor is told what a scan of the log meets, in the order of the log. Its funcs may be nil; their errors end the scan.
type visitor struct {
	// record is called for each record; crc says that its body is not what was written. It is valid during the call.
	record func(at int64, r message.Record, crc error) error
	// damage is called for a part that holds no record, though records stand behind it. file is its name; the cause ""
	// is zeros, or that the damage began in an earlier file.
	damage func(file string, s span, cause string) error
	// missing is called for a part whose file is not there.
	missing func(s span) error
	// blank is called for a blank record whose size is not that of the rest of its file.
	blank func(file string, at int64, size, rest int64) error
}

// scanned is what a scan has found out about the end of the log.
type scanned struct {
	end       int64  // behind the last record
	good      int64  // behind the last record whose checksum is right
	last      int64  // newest store timestamp, ms
	found     int64  // records
	cause     string // what stands at end; "" is zeros, or nothing
	dirty     span   // in the file of end: from end to behind the last byte that is not zero
	file      int    // that holds end, -1 without files
	behindEnd []int  // files behind it that hold something
}

// errStop ends a scan early without being an error.
var errStop = errors.New("stop")

// logScan is one scan under way.
type logScan struct {
	d *Dir
	v visitor
	scanned
	reader *logReader
	stage  string
}

// scan visits the log from the first record at or behind an offset. A place that is no record does not end it when a
// record that belongs to the log stands behind: see live.
func (d *Dir) scan(from int64, stage string, v visitor) (scanned, error) {
	s := &logScan{d: d, v: v, stage: stage}
	s.scanned = scanned{end: max(from, d.log.min()), file: -1}
	s.last = math.MinInt64
	s.good = s.end
	err := s.run(from)
	s.reader.close()
	if err == errStop {
		return s.scanned, nil
	}
	if err == nil {
		err = s.tail()
	}
	return s.scanned, err
}

func (s *logScan) run(from int64) error {
	l := &s.d.log
	first := 0
	if from > l.min() {
		if first = l.find(from); first < 0 {
			return nil
		}
	}
	var open *span // damage that has no record behind it yet
	var file, cause string
	resume, confirmed := int64(-1), int64(-1)
files:
	for i := first; i < len(l.files); i++ {
		start := l.files[i].start
		if i > first && start > l.fileEnd(i-1) {
			if s.v.missing != nil {
				if err := s.v.missing(span{l.fileEnd(i - 1), start}); err != nil {
					return err
				}
			}
		}
		if err := s.open(i); errors.Is(err, fs.ErrNotExist) && s.d.running {
			continue // expired meanwhile
		} else if err != nil {
			return err
		}
		at := start
		if resume >= 0 {
			at, resume = resume, -1
		} else if i == first && from > start {
			var err error
			if at, err = s.reader.next(from, anyRecord); err != nil {
				return err
			}
			if at < 0 {
				continue
			}
		}
		for {
			if open != nil { // is there anything behind the damage?
				next, err := s.reader.next(at, s.live)
				if err != nil {
					return err
				}
				if next < 0 {
					break
				}
				if s.d.running && open.from != confirmed { // it may have been written since it was read
					confirmed, resume = open.from, open.from
					i, open = l.find(open.from)-1, nil
					continue files
				}
				open.to = next
				if err := s.damaged(i, *open, file, cause); err != nil {
					return err
				}
				open, at = nil, next
			}
			stop, why, err := s.records(i, at)
			if err != nil {
				return err
			}
			if stop < 0 { // the file is done
				break
			}
			open, file, cause, at = &span{stop, stop}, s.reader.path, why, stop
			at++
		}
	}
	if open != nil {
		s.end, s.cause = open.from, cause
	}
	return nil
}

// anyRecord takes every record.
func anyRecord(int64, message.Record) (bool, error) { return true, nil }

// live tells whether a record behind damage belongs to the log. One that is older than those before the damage was left
// by a log that ended here once and was not zeroed, as the official broker leaves it.
func (s *logScan) live(at int64, r message.Record) (bool, error) {
	if r.StoreTimestamp() < s.last {
		return false, nil
	}
	return s.d.belongs(at)
}

// belongs tells whether a record that stands behind damage is one of a log that was closed in order: recovery may have
// ended the log at the damage before, and nothing was zeroed since.
func (d *Dir) belongs(at int64) (bool, error) {
	if d.abort || d.running {
		return true, nil // that is what the next start will decide
	}
	if own := d.checkpoint.Dispatched; own >= 0 {
		return at < own, nil
	}
	known, err := d.knownEnd()
	return at < known, err
}

// knownEnd is the log offset behind the newest record that any queue knows; the largest one when there are no queues that
// could tell.
func (d *Dir) knownEnd() (int64, error) {
	if d.known > 0 {
		return d.known, nil
	}
	var err error
	told := false
	d.queues.each(func(q *queue) bool {
		if len(q.files) == 0 {
			return true
		}
		told = true
		var first, end int64
		if first, end, err = d.bounds(q); err != nil {
			return false
		}
		for k := end - 1; k >= max(first, end-chunkSize/consumequeue.EntrySize); k-- {
			var e consumequeue.Entry
			if e, _, err = d.look(q, k); err != nil {
				return false
			}
			if valid(e) && !e.IsBlank() {
				d.known = max(d.known, e.PhyOffset+int64(e.Size))
				break
			}
		}
		return true
	})
	if !told {
		d.known = math.MaxInt64
	}
	return d.known, err
}

// open makes a file the one that is read.
func (s *logScan) open(i int) (err error) {
	s.reader.close()
	s.reader = nil
	if s.reader, err = s.d.readLog(i); err != nil {
		return err
	}
	first, last := s.d.log.min(), s.d.log.end()
	s.reader.onRead = func(offset int64) {
		s.d.progress(s.stage, offset-first, last-first)
	}
	return nil
}

// records visits the records of a file from one on. It returns where there is none, and why; -1 when the file has been
// read to its end.
func (s *logScan) records(i int, at int64) (stop int64, why string, err error) {
	end := s.d.log.fileEnd(i)
	for at < end {
		r, crc, err := s.reader.record(at)
		var not *notRecord
		switch {
		case errors.As(err, &not) && not.blank:
			if s.v.blank != nil && int64(not.size) != end-at {
				if err := s.v.blank(s.reader.path, at, int64(not.size), end-at); err != nil {
					return 0, "", err
				}
			}
			if s.good == s.end {
				s.good = end
			}
			s.end, s.file = end, i
			return -1, "", nil
		case not == errZeros:
			return at, "", nil
		case not != nil:
			return at, not.text, nil
		case err != nil:
			return 0, "", err
		}
		s.count(r, crc, at, i)
		if s.v.record != nil {
			if err := s.v.record(at, r, crc); err != nil {
				return 0, "", err
			}
		}
		at += int64(r.Size())
	}
	return -1, "", nil
}

// count notes a record.
func (s *logScan) count(r message.Record, crc error, at int64, i int) {
	s.found++
	s.last = max(s.last, r.StoreTimestamp())
	s.end, s.file = at+int64(r.Size()), i
	if crc == nil {
		s.good = s.end
	}
}

// damaged tells of a part without records, for each file that it touches.
func (s *logScan) damaged(i int, whole span, file, cause string) error {
	if s.v.damage == nil {
		return nil
	}
	l := &s.d.log
	for k := l.find(whole.from); k >= 0 && k <= i && whole.from < whole.to; k++ {
		part := span{max(whole.from, l.files[k].start), min(whole.to, l.fileEnd(k))}
		if part.from >= part.to {
			continue
		}
		if l.files[k].path != file {
			cause = ""
		}
		if err := s.v.damage(l.files[k].path, part, cause); err != nil {
			return err
		}
	}
	return nil
}

// tail looks at what lies behind the end.
func (s *logScan) tail() error {
	l := &s.d.log
	if len(l.files) == 0 || s.d.running {
		return nil
	}
	i := l.find(s.end)
	if i < 0 { // at the very end of the last file
		i = len(l.files) - 1
	}
	s.file = i
	s.dirty = span{s.end, s.end}
	for k := i; k < len(l.files); k++ {
		if err := s.open(k); err != nil {
			return err
		}
		from := max(s.end, l.files[k].start)
		last, err := s.reader.lastByte(from)
		if err != nil {
			return err
		}
		if k == i {
			s.dirty.to = last
		} else if last > from {
			s.behindEnd = append(s.behindEnd, k)
		}
	}
	return nil
}
