package inspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"sort"
	"time"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/segment"
	"rocketd/store/vfs"
)

const (
	// readStep is how much of the log is read at once.
	readStep = 1 << 20
	// maxRecord is the largest record that is believed in: far beyond what maxMessageSize is set to.
	maxRecord = 256 << 20
)

// commitLog is the files of the log.
type commitLog struct {
	dir      string
	fileSize int64     // what each file should have
	files    []logFile // in order
	stray    []string  // names that are not the log's
}

type logFile struct {
	path     string
	start    int64 // offset of the first byte
	length   int64 // bytes that are there
	modified time.Time
}

func (d *Dir) openLog() error {
	l := &d.log
	l.dir = d.path("commitlog")
	if c := d.o.Config; c != nil && c.StorePathCommitLog != "" {
		l.dir = path.Clean(c.StorePathCommitLog)
	}
	entries, err := d.list(l.dir)
	if err != nil {
		return err
	}
	sizes := map[int64]int{}
	for _, e := range entries {
		start, ok := segment.ParseName(e.Name())
		if e.IsDir() || !ok {
			l.stray = append(l.stray, path.Join(l.dir, e.Name()))
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		sizes[info.Size()]++
		l.files = append(l.files, logFile{path.Join(l.dir, e.Name()), start, info.Size(), info.ModTime()})
	}
	sort.Slice(l.files, func(i, j int) bool { return l.files[i].start < l.files[j].start })
	l.fileSize = l.guessSize(sizes)
	if c := d.o.Config; c != nil {
		l.fileSize = int64(c.MappedFileSizeCommitLog)
	}
	return nil
}

// guessSize is the file size that names and lengths agree upon.
func (l *commitLog) guessSize(sizes map[int64]int) int64 {
	size := commonSize(sizes)
	step := int64(0)
	for i := 1; i < len(l.files); i++ {
		if d := l.files[i].start - l.files[i-1].start; step == 0 || d < step {
			step = d
		}
	}
	if step > 0 && (size == 0 || step%size != 0) {
		return step
	}
	return size
}

// defaultSize tells whether the files have the default size; then other files without a witness will have theirs too.
func (l *commitLog) defaultSize() bool {
	return len(l.files) == 0 || l.fileSize == int64(store.DefaultConfig("").MappedFileSizeCommitLog)
}

// min is the first offset, end that behind the last file.
func (l *commitLog) min() int64 {
	if len(l.files) == 0 {
		return 0
	}
	return l.files[0].start
}

func (l *commitLog) end() int64 {
	if n := len(l.files); n > 0 {
		return l.fileEnd(n - 1)
	}
	return 0
}

// fileEnd is where the offsets of a file end: the next one may begin earlier than a file too long would have it.
func (l *commitLog) fileEnd(i int) int64 {
	end := l.files[i].start + max(l.fileSize, 1)
	if i+1 < len(l.files) {
		end = min(end, l.files[i+1].start)
	}
	return end
}

// readable is how far a file can be read.
func (l *commitLog) readable(i int) int64 {
	return min(l.fileEnd(i), l.files[i].start+l.files[i].length)
}

// find is the file that holds an offset, -1 when none does.
func (l *commitLog) find(offset int64) int {
	i := sort.Search(len(l.files), func(i int) bool { return l.files[i].start > offset }) - 1
	if i >= 0 && offset >= l.fileEnd(i) {
		return -1
	}
	return i
}

// logReader reads one file of the log in large steps.
type logReader struct {
	file   vfs.File
	path   string
	start  int64 // offset of the file's first byte
	end    int64 // offset behind the last readable byte
	buf    []byte
	at     int64 // offset of the first byte in buf
	step   int   // bytes that are read at once
	onRead func(offset int64)
}

func (d *Dir) readLog(i int) (*logReader, error) {
	f := &d.log.files[i]
	file, err := d.fs.OpenRead(f.path)
	if err != nil {
		return nil, err
	}
	return &logReader{file: file, path: f.path, start: f.start, end: d.log.readable(i), step: readStep}, nil
}

// bytes returns what is in memory from offset on: need bytes at least, unless the file ends before.
func (r *logReader) bytes(offset int64, need int) ([]byte, error) {
	need = int(min(int64(need), r.end-offset))
	if have := r.at + int64(len(r.buf)); offset >= r.at && have >= offset+int64(need) && (need > 0 || offset < have) {
		return r.buf[offset-r.at:], nil
	}
	if offset >= r.end {
		return nil, nil
	}
	size := int(min(int64(max(need, r.step)), r.end-offset))
	if cap(r.buf) < size {
		r.buf = make([]byte, size)
	}
	r.buf, r.at = r.buf[:size], offset
	n, err := r.file.ReadAt(r.buf, offset-r.start)
	r.buf = r.buf[:n]
	if err != nil && err != io.EOF {
		r.buf = r.buf[:0]
		return nil, fmt.Errorf("reading %s: %w", r.path, err)
	}
	if err == io.EOF { // cut meanwhile
		r.end = offset + int64(n)
	}
	if r.onRead != nil {
		r.onRead(offset)
	}
	return r.buf, nil
}

func (r *logReader) close() {
	if r != nil {
		r.file.Close()
	}
}

// notRecord says why no record stands at a place. blank: a blank record stands there.
type notRecord struct {
	text  string
	blank bool
	size  int // of the blank record
}

func (e *notRecord) Error() string { return e.text }

// errZeros: nothing was ever written there.
var errZeros = &notRecord{text: "zeros"}

// record reads the record at an offset; crc is nil or says that the body's checksum is wrong. An error is a
// *notRecord, or that of reading. The bytes are valid until the next call.
func (r *logReader) record(offset int64) (rec message.Record, crc, err error) {
	b, err := r.bytes(offset, message.MinRecordSize)
	if err != nil {
		return nil, nil, err
	}
	size, err := message.Check(b, false)
	if errors.Is(err, message.ErrShort) && len(b) >= message.MinRecordSize {
		// A record that names its own place is one, so it is worth reading however large it says it is.
		if at := message.Record(b).PhyOffset(); at != offset || int64(size) > r.end-offset || size > maxRecord {
			return nil, nil, &notRecord{text: fmt.Sprintf("a record of %d bytes that names offset %d, %d bytes before the end of what can be read", size, at, r.end-offset)}
		}
		if b, err = r.bytes(offset, size); err != nil {
			return nil, nil, err
		}
		size, err = message.Check(b, false)
	}
	switch {
	case err == nil:
	case errors.Is(err, message.ErrBlank):
		return nil, nil, &notRecord{text: "a blank record", blank: true, size: size}
	case zeros(b[:min(len(b), message.BlankRecordSize)]):
		return nil, nil, errZeros
	default:
		return nil, nil, &notRecord{text: err.Error()}
	}
	rec = message.Record(b[:size:size])
	if at := rec.PhyOffset(); at != offset {
		return nil, nil, &notRecord{text: fmt.Sprintf("a record that names offset %d", at)}
	}
	if body := rec.Body(); len(body) > 0 {
		if sum := message.BodyCRC(body); sum != rec.BodyCRC() {
			crc = fmt.Errorf("%w: computed %#x, stored %#x", message.ErrCRC, sum, rec.BodyCRC())
		}
	}
	return rec, crc, nil
}

var magicCode = binary.BigEndian.AppendUint32(nil, message.MagicCode)

// next finds the first record at or behind an offset that wanted takes; -1 when there is none.
func (r *logReader) next(offset int64, wanted func(at int64, rec message.Record) (bool, error)) (int64, error) {
	for offset < r.end {
		b, err := r.bytes(offset, message.MinRecordSize)
		if err != nil {
			return -1, err
		}
		if len(b) < message.MinRecordSize {
			return -1, nil
		}
		i := bytes.Index(b[4:], magicCode)
		if i < 0 {
			offset += int64(max(1, len(b)-7))
			continue
		}
		offset += int64(i)
		rec, _, err := r.record(offset)
		if err == nil {
			ok, err := wanted(offset, rec)
			if ok || err != nil {
				return offset, err
			}
		} else if !errors.As(err, new(*notRecord)) {
			return -1, err
		}
		offset++
	}
	return -1, nil
}

// lastByte is the offset behind the last byte that is not zero in [offset, end of the file).
func (r *logReader) lastByte(offset int64) (int64, error) {
	last := offset
	for offset < r.end {
		b, err := r.bytes(offset, 1)
		if err != nil {
			return last, err
		}
		if len(b) == 0 {
			break
		}
		for i := len(b) - 1; i >= 0; i-- {
			if b[i] != 0 {
				last = offset + int64(i) + 1
				break
			}
		}
		offset += int64(len(b))
	}
	return last, nil
}

// zeroPage is what zeros compares with.
var zeroPage [4096]byte

func zeros(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(zeroPage))
		if !bytes.Equal(b[:n], zeroPage[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}
