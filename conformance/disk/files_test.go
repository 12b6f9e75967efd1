//go:build conformance

package disk

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"rocketd/conformance/wire"
)

const (
	recordMagic = 0xDAA320A7
	blankMagic  = 0xCBD43194
	entrySize   = 20
)

// record is one record of the commit log; a blank one has no message.
type record struct {
	stored
	phyOffset int64
	size      int
}

func (r record) blank() bool { return r.Message == nil }

// readLog reads a commit log up to its end: the first thing that is no record. Every record must have a good CRC and
// stand where it says. It returns the end.
func readLog(t *testing.T, dir string, fileSize int64) (all []record, end int64) {
	t.Helper()
	for {
		name := filepath.Join(dir, fileName(end))
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return all, end
		}
		if err != nil {
			t.Fatal(err)
		}
		records, size := readLogFile(t, f, end)
		_ = f.Close()
		all = append(all, records...)
		if n := len(records); n == 0 || !records[n-1].blank() {
			return all, end + size
		}
		if end += fileSize; size != fileSize {
			t.Fatalf("%s: the blank record ends at %d", name, size)
		}
	}
}

func readLogFile(t *testing.T, f *os.File, start int64) (all []record, at int64) {
	t.Helper()
	var head [8]byte
	for {
		if n, _ := f.ReadAt(head[:], at); n < len(head) {
			return all, at
		}
		size := int64(binary.BigEndian.Uint32(head[:]))
		r := record{phyOffset: start + at, size: int(size)}
		switch binary.BigEndian.Uint32(head[4:]) {
		case recordMagic:
			raw := make([]byte, size)
			if _, err := f.ReadAt(raw, at); err != nil {
				t.Fatalf("%s: record at %d of %d bytes: %v", f.Name(), at, size, err)
			}
			r.stored = split(t, raw)[0]
			if r.PhyOffset != r.phyOffset || r.Size != r.size || r.BodyCRC != crc32.ChecksumIEEE(r.Body)&0x7FFFFFFF {
				t.Fatalf("%s: record at %d: %s", f.Name(), at, describe(r.stored))
			}
		case blankMagic:
		default:
			return all, at
		}
		at += size
		if r.blank() {
			return append(all, r), at
		}
		if r.Topic != fillerTopic && r.Topic != counterTopic {
			all = append(all, r)
		}
	}
}

func fileName(start int64) string {
	digits := strconv.FormatInt(start, 10)
	return "00000000000000000000"[len(digits):] + digits
}

// entry is an entry of a consume queue.
type entry struct {
	phyOffset int64
	size      int32
	tagsCode  int64
}

// readQueue reads the entries of a queue up to the first place without one.
func readQueue(t *testing.T, dir string, p place, fileSize int64) (all []entry) {
	t.Helper()
	for start := int64(0); ; start += fileSize {
		name := filepath.Join(dir, p.topic, strconv.Itoa(int(p.queueId)), fileName(start))
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(b) == 0 {
			return all // its making was cut off by the kill
		}
		if int64(len(b)) != fileSize {
			t.Fatalf("%s has %d bytes, want %d", name, len(b), fileSize)
		}
		for ; len(b) >= entrySize; b = b[entrySize:] {
			e := entry{int64(binary.BigEndian.Uint64(b)), int32(binary.BigEndian.Uint32(b[8:])), int64(binary.BigEndian.Uint64(b[12:]))}
			if e.size == 0 {
				return all
			}
			all = append(all, e)
		}
	}
}

// javaHash is String.hashCode.
func javaHash(s string) (h int32) {
	for _, u := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(u)
	}
	return h
}

// tagsCode is what a record's entry in its queue must have; ok is false when it need not have one.
func (r record) tagsCode() (code int64, ok bool) {
	if transaction := r.SysFlag & 0xC; transaction == 0x4 || transaction == 0xC {
		return 0, false
	}
	if level := r.Properties["DELAY"]; r.Topic == scheduleTopic && level != "" {
		return r.StoreTimestamp + delays[level], true
	}
	return int64(javaHash(r.Properties["TAGS"])), true
}

// sizes are the sizes of a store's files.
type sizes struct{ log, queue, ext int64 }

// checkFiles reads the directory of a server that has ended: the log must hold what was read through the server, the
// queues what is in the log. After a kill a queue may end too early; it must not say anything wrong.
func (l *ledger) checkFiles(t *testing.T, dir string, sz sizes, killed bool) {
	t.Helper()
	if lock, err := os.ReadFile(filepath.Join(dir, "lock")); err != nil || string(lock) != "lock" {
		t.Errorf("lock file: %q, %v", lock, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "abort")); errors.Is(err, fs.ErrNotExist) == killed {
		t.Errorf("abort file: %v", err)
	}
	records, end := readLog(t, filepath.Join(dir, "commitlog"), sz.log)
	if !killed {
		checkLastFile(t, filepath.Join(dir, "commitlog"), sz.log, end)
	}
	queues := map[place][]record{}
	for _, r := range records {
		if r.blank() {
			continue
		}
		p := place{r.Topic, r.QueueId}
		if r.QueueOffset == 0 {
			queues[p] = nil // what is before is of a topic that was deleted and made again
		}
		queues[p] = append(queues[p], r)
	}
	for p, known := range l.queues {
		on := queues[p]
		if len(on) < len(known) {
			t.Errorf("%s: %d records in the log, %d messages were read", p, len(on), len(known))
			continue
		}
		for i, m := range known {
			if string(m.read.raw) != string(on[i].raw) {
				t.Errorf("%s offset %d: the log has\n%s\nread was\n%s", p, i, describe(on[i].stored), describe(m.read))
			}
		}
		l.checkQueue(t, filepath.Join(dir, "consumequeue"), p, on, sz, killed)
	}
}

func (l *ledger) checkQueue(t *testing.T, dir string, p place, records []record, sz sizes, killed bool) {
	t.Helper()
	entries := readQueue(t, dir, p, sz.queue)
	if len(entries) > len(records) || len(entries) < len(records) && !killed {
		t.Errorf("%s: %d entries, %d records", p, len(entries), len(records))
	}
	for i, e := range entries[:min(len(entries), len(records))] {
		r := records[i]
		code, _ := r.tagsCode()
		if e.tagsCode <= maxExtAddress {
			var stored int64
			if e.tagsCode, stored = resolve(t, filepath.Dir(dir), p, e.tagsCode, sz.ext); stored != r.StoreTimestamp {
				t.Errorf("%s: the unit of entry %d is of %d, the record of %d", p, i, stored, r.StoreTimestamp)
			}
			l.units++
		}
		if want := (entry{r.phyOffset, int32(r.size), code}); e != want || r.QueueOffset != int64(i) {
			t.Errorf("%s: entry %d is %+v, want %+v of queue offset %d", p, i, e, want, r.QueueOffset)
		}
	}
}

// checkLastFile: after a clean stop the file made in advance is gone, and what is behind the end is zeros.
func checkLastFile(t *testing.T, dir string, fileSize, end int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	last := filepath.Base(names[len(names)-1])
	if want := fileName((end - 1) / fileSize * fileSize); last != want {
		t.Errorf("the last file is %s; the log ends at %d, in %s", last, end, want)
	}
	f, err := os.Open(filepath.Join(dir, last))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const enough = 4 << 20 // no record is larger
	b := make([]byte, enough)
	n, _ := f.ReadAt(b, end-(end-1)/fileSize*fileSize)
	for i, c := range b[:n] {
		if c != 0 {
			t.Errorf("behind the end of the log, at %d, is no zero", end+int64(i))
			return
		}
	}
}

// removeCutOff removes files that were made and had not got their length when their maker was killed: the official broker
// refuses to start with one, also with its own.
func removeCutOff(t *testing.T, dir string) {
	t.Helper()
	for _, pattern := range []string{"commitlog/*", "consumequeue/*/*/*"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if st, err := os.Stat(name); err == nil && st.Size() == 0 {
				t.Logf("the kill left %s empty; it is removed for the official broker", name)
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// savedOffsets reads consumerOffset.json: "group topic queue" → offset.
func savedOffsets(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "config", "consumerOffset.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := wire.ParseJSON(text)
	if err != nil {
		t.Fatalf("consumerOffset.json: %v\n%s", err, text)
	}
	all := map[string]int64{}
	table, _ := v.(map[string]any)["offsetTable"].(map[string]any)
	for at, queues := range table {
		topic, group, _ := strings.Cut(at, "@")
		for q, offset := range queues.(map[string]any) {
			all[group+" "+topic+" "+q] = int64(offset.(float64))
		}
	}
	return all
}
