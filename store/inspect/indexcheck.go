package inspect

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"rocketd/protocol/message"
	"rocketd/store/index"
)

// indexCheck reads the index beside the log: entries stand in the order of their records.
type indexCheck struct {
	v      *verify
	reader indexReader

	entries  []placedEntry // the next ones, two at most
	eof      bool
	accepted int64 // log offset of the last entry that had its record
	newest   []int32
	last     index.FileEntry // that was read

	expected []int32 // hashes of the record's keys
	headers  map[*indexFile]bool
	missing  int64 // keys without files
}

type placedEntry struct {
	index.FileEntry
	entryPlace
}

func (c *indexCheck) start(v *verify) {
	c.v = v
	c.headers = map[*indexFile]bool{}
	c.reader = indexReader{d: v.d, endOf: c.endOf}
	x := &v.d.index
	for _, name := range x.stray {
		v.report.note("%s is not an index file", v.d.short(name))
	}
	for _, name := range x.other {
		v.report.note("%s was made with other sizes than the newest index files, which brokers use", v.d.short(name))
	}
	for _, f := range x.files {
		switch {
		case x.slots == 0 && f.header.IndexCount > 1:
			c.add(Finding{Kind: IndexFileSize, File: v.d.short(f.path), Text: fmt.Sprintf("no number of hash slots fits its %d bytes and its entries; give broker.conf with -c", f.length)})
		case x.slots > 0 && f.length > x.fileSize():
			c.add(Finding{Kind: IndexFileSize, File: v.d.short(f.path), Offset: x.fileSize(), Text: fmt.Sprintf("it has %d bytes, not %d", f.length, x.fileSize())})
		}
	}
}

// add reports a finding after which the index is to be made anew.
func (c *indexCheck) add(f Finding) {
	c.v.damage.index = true
	c.v.report.add(f)
}

// off tells that there is nothing to compare with.
func (c *indexCheck) off() bool { return len(c.v.d.index.files) == 0 || c.v.d.index.slots == 0 }

// disabled: broker.conf says that there is no index.
func (c *indexCheck) disabled() bool {
	return c.v.d.o.Config != nil && !c.v.d.o.Config.MessageIndexEnable
}

// keys lists the hashes under which a record is indexed (IndexService#buildIndex of 4.9.8).
func keys(dst []int32, r message.Record) []int32 {
	if message.TransactionValue(r.SysFlag()) == message.TransactionRollback {
		return dst
	}
	topic := r.Topic()
	if uniq, ok := r.Property(message.PropertyUniqKey); ok {
		dst = append(dst, index.KeyHash(topic, uniq))
	}
	if list, ok := r.Property(message.PropertyKeys); ok {
		for key := range strings.SplitSeq(list, message.KeySeparator) {
			if key != "" {
				dst = append(dst, index.KeyHash(topic, key))
			}
		}
	}
	return dst
}

// record looks for the keys of a record.
func (c *indexCheck) record(at int64, r message.Record) error {
	if c.disabled() {
		return nil
	}
	c.expected = keys(c.expected[:0], r)
	c.v.report.Keys += int64(len(c.expected))
	if c.off() {
		if !c.v.isPending(at) {
			c.missing += int64(len(c.expected))
		}
		return nil
	}
	if err := c.fill(); err != nil {
		return err
	}
	for len(c.entries) > 0 && (c.entries[0].PhyOffset < at || c.odd()) {
		c.stray(c.entries[0])
		if err := c.take(); err != nil {
			return err
		}
	}
	seen := len(c.expected) // hashes from here on have been found
	for len(c.entries) > 0 && c.entries[0].PhyOffset == at {
		e := c.entries[0]
		switch i := slices.Index(c.expected, e.KeyHash); {
		case i < 0:
			c.entry(e, "the record has no key with the entry's hash")
		case i < seen:
			seen--
			c.expected[i], c.expected[seen] = c.expected[seen], c.expected[i]
		}
		c.times(e, r)
		c.accepted = at
		if err := c.take(); err != nil {
			return err
		}
	}
	if seen == 0 {
		return nil
	}
	if c.v.isPending(at) {
		c.v.pending++
		return nil
	}
	f := c.v.logFinding(KeyMissing, at, fmt.Sprintf("%d of the %d keys of the record are not in the index: it is not found by them", seen, len(c.expected)))
	id, n := r.QueueId(), r.QueueOffset()
	f.Topic, f.QueueId, f.QueueOffset = strings.Clone(r.Topic()), &id, &n
	c.add(f)
	return nil
}

// odd tells whether the next entry is out of order against both the one before it and the one behind it.
func (c *indexCheck) odd() bool {
	return len(c.entries) > 1 && c.entries[1].PhyOffset < c.entries[0].PhyOffset && c.entries[1].PhyOffset >= c.accepted
}

// fill reads ahead.
func (c *indexCheck) fill() error {
	for !c.eof && len(c.entries) < 2 {
		e, place, err := c.reader.read()
		if err == io.EOF {
			c.eof = true
			return nil
		}
		if err != nil {
			return err
		}
		c.entries = append(c.entries, placedEntry{e, place})
		c.chain(c.entries[len(c.entries)-1])
	}
	return nil
}

// take goes on to the next entry.
func (c *indexCheck) take() error {
	c.entries = c.entries[:copy(c.entries, c.entries[1:])]
	return c.fill()
}

// volatile tells whether the next start mends a file, or makes it anew: the broker had not yet finished it.
func (c *indexCheck) volatile(f *indexFile) bool {
	d := c.v.d
	return (d.abort || d.running) && (f == &d.index.files[len(d.index.files)-1] || f.header.EndTimestamp > d.checkpoint.IndexMsgTimestamp)
}

// entry reports a bad entry.
func (c *indexCheck) entry(e placedEntry, text string) {
	if c.volatile(e.f) {
		c.v.stale++
		return
	}
	c.add(Finding{Kind: IndexEntryWrong, File: c.v.d.short(e.f.path), Offset: c.v.d.index.entryAt(e.k), PhyOffset: &e.PhyOffset, Text: fmt.Sprintf("entry %d: %s", e.k, text)})
}

// stray judges an entry to which no record belongs.
func (c *indexCheck) stray(e placedEntry) {
	end := c.v.scan.end // 0 as long as the log is being read
	switch {
	case e.PhyOffset >= 0 && e.PhyOffset < c.v.d.log.min(): // expired
	case e.PhyOffset < c.accepted:
		c.entry(e, "it stands behind an entry of a later record")
	case c.v.isPending(e.PhyOffset):
		c.v.stale++
	case end > 0 && e.PhyOffset >= end:
		c.entry(e, fmt.Sprintf("it points behind the end of the log, %d", end))
	default:
		c.entry(e, "there is no record with such a key")
	}
}

// chain checks that an entry leads to the one that its slot had before.
func (c *indexCheck) chain(e placedEntry) {
	x := &c.v.d.index
	if e.k == 1 {
		if c.newest == nil {
			c.newest = make([]int32, x.slots)
		} else {
			clear(c.newest)
		}
	}
	c.last = e.FileEntry
	if e.KeyHash < 0 {
		c.entry(e, "its hash is negative")
		return
	}
	slot := e.KeyHash % x.slots
	if e.Previous != c.newest[slot] {
		if c.volatile(e.f) {
			c.v.stale++
		} else {
			c.add(Finding{Kind: IndexChain, File: c.v.d.short(e.f.path), Offset: x.entryAt(e.k), PhyOffset: &e.PhyOffset,
				Text: fmt.Sprintf("entry %d leads to %d, the one before it in slot %d is %d: what hangs on it is not found", e.k, e.Previous, slot, c.newest[slot])})
		}
	}
	c.newest[slot] = e.k
}

// times compares an entry with the store time of its record, and the first and the last with the header.
func (c *indexCheck) times(e placedEntry, r message.Record) {
	h := e.f.header
	switch {
	case e.k == 1 && (h.BeginPhyOffset != e.PhyOffset || h.BeginTimestamp != r.StoreTimestamp()):
		c.header(e.f, fmt.Sprintf("it says that the file begins at log offset %d, time %d; the first entry is of %d, %d", h.BeginPhyOffset, h.BeginTimestamp, e.PhyOffset, r.StoreTimestamp()))
	case e.k > 1 && !c.headers[e.f]:
		if want := index.SecondsSince(h.BeginTimestamp, r.StoreTimestamp()); e.Seconds != want {
			c.entry(e, fmt.Sprintf("it has second %d of the file, by the record it is %d", e.Seconds, want))
		}
	}
	if e.k == h.IndexCount-1 && (h.EndPhyOffset != e.PhyOffset || h.EndTimestamp != r.StoreTimestamp()) {
		c.header(e.f, fmt.Sprintf("it says that the file ends at log offset %d, time %d; the last entry is of %d, %d", h.EndPhyOffset, h.EndTimestamp, e.PhyOffset, r.StoreTimestamp()))
	}
}

func (c *indexCheck) header(f *indexFile, text string) {
	if c.volatile(f) {
		c.v.stale++
		return
	}
	if !c.headers[f] {
		c.headers[f] = true
		c.add(Finding{Kind: IndexHeader, File: c.v.d.short(f.path), Text: text})
	}
}

// endOf compares the slots of a file with its entries, all of which have been read.
func (c *indexCheck) endOf(f *indexFile) error {
	x := &c.v.d.index
	if f.header.IndexCount > x.entries {
		c.header(f, fmt.Sprintf("it says that there are %d entries, the file has room for %d", f.header.IndexCount-1, x.entries-1))
	}
	if c.newest == nil || f.header.IndexCount <= 1 {
		return nil
	}
	in, err := c.v.d.fs.OpenRead(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	buf := make([]byte, readStep)
	bad, first := 0, int32(0)
	var has int32
	for at := int32(0); at < x.slots; {
		b := buf[:min(int64(len(buf)), int64(x.slots-at)*index.SlotSize)]
		if err := readFull(in, f.path, b, index.HeaderSize+int64(at)*index.SlotSize); err != nil {
			return err
		}
		for ; len(b) > 0; b = b[index.SlotSize:] {
			if newest := int32(binary.BigEndian.Uint32(b)); newest != c.newest[at] {
				if bad++; bad == 1 {
					first, has = at, newest
				}
			}
			at++
		}
	}
	if bad == 0 {
		return nil
	}
	if c.volatile(f) {
		c.v.stale += int64(bad)
		return nil
	}
	c.add(Finding{Kind: IndexChain, File: c.v.d.short(f.path), Offset: index.HeaderSize + int64(first)*index.SlotSize,
		Text: fmt.Sprintf("slot %d has entry %d, its newest is %d: keys are not found; %d slots of the file are wrong", first, has, c.newest[first], bad)})
	return nil
}

// checkIndex looks at the entries behind the last record.
func (v *verify) checkIndex() error {
	c := &v.index
	defer c.reader.close()
	if c.missing > 0 && len(v.d.index.files) == 0 {
		c.add(Finding{Kind: IndexMissing, File: "index", Text: fmt.Sprintf(
			"there are no index files; %d keys of records can't be found (give broker.conf with -c if messageIndexEnable is false)", c.missing)})
	}
	if c.off() || c.disabled() {
		return nil
	}
	for {
		if err := c.fill(); err != nil {
			return err
		}
		if len(c.entries) == 0 {
			return nil
		}
		c.stray(c.entries[0])
		if err := c.take(); err != nil {
			return err
		}
	}
}
