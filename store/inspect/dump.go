package inspect

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"rocketd/protocol/message"
	"rocketd/store/index"
)

// Query chooses what is dumped. The zero value of a field leaves it open, but Limit 0 is nothing.
type Query struct {
	Topic    string
	QueueId  int32 // -1: any
	Key      string
	From, To int64 // log offsets, [From, To); To 0 is the end
	// Queue offsets, [QueueFrom, QueueTo); QueueTo 0 is the end. They need topic and queue.
	QueueFrom, QueueTo int64
	Since, Until       int64 // store timestamps, ms; Until 0 is open
	Limit              int64
}

// Record is one record of the log.
type Record struct {
	PhyOffset                 int64             `json:"phyOffset"`
	File                      string            `json:"file"`
	FileOffset                int64             `json:"fileOffset"`
	Size                      int               `json:"size"`
	Topic                     string            `json:"topic"`
	QueueId                   int32             `json:"queueId"`
	QueueOffset               int64             `json:"queueOffset"`
	OffsetMsgId               string            `json:"offsetMsgId"`
	Flag                      int32             `json:"flag"`
	SysFlag                   int32             `json:"sysFlag"`
	BornTimestamp             int64             `json:"bornTimestamp"`
	BornHost                  string            `json:"bornHost"`
	StoreTimestamp            int64             `json:"storeTimestamp"`
	StoreHost                 string            `json:"storeHost"`
	ReconsumeTimes            int32             `json:"reconsumeTimes"`
	PreparedTransactionOffset int64             `json:"preparedTransactionOffset"`
	BodyCRC                   uint32            `json:"bodyCrc"`
	BodySize                  int               `json:"bodySize"` // as stored
	Properties                map[string]string `json:"properties"`
	Damage                    string            `json:"damage,omitempty"` // what is wrong with it
	// The body, inflated where it was compressed with zlib: as text, or in base64 when it is none.
	Body       *string `json:"body,omitempty"`
	BodyBase64 []byte  `json:"bodyBase64,omitempty"`
}

// QueueEntry is one entry of a consume queue.
type QueueEntry struct {
	Topic       string `json:"topic"`
	QueueId     int32  `json:"queueId"`
	QueueOffset int64  `json:"queueOffset"`
	File        string `json:"file"`
	FileOffset  int64  `json:"fileOffset"`
	PhyOffset   int64  `json:"phyOffset"`
	Size        int32  `json:"size"`
	TagsCode    int64  `json:"tagsCode"`
	Blank       bool   `json:"blank,omitempty"`
	Unit        *Unit  `json:"unit,omitempty"` // to which the tagsCode leads
}

// Unit is one unit of consumequeue_ext.
type Unit struct {
	Offset         int64  `json:"offset"`
	TagsCode       int64  `json:"tagsCode"`
	StoreTimestamp int64  `json:"storeTimestamp"`
	BitMap         []byte `json:"bitMap,omitempty"`
	Damage         string `json:"damage,omitempty"` // why it can't be read
}

// IndexEntry is one entry of an index file.
type IndexEntry struct {
	File       string `json:"file"`
	Entry      int32  `json:"entry"`
	FileOffset int64  `json:"fileOffset"`
	KeyHash    int32  `json:"keyHash"`
	PhyOffset  int64  `json:"phyOffset"`
	Timestamp  int64  `json:"timestamp"` // ms, to the second
	Previous   int32  `json:"previous"`
}

// ErrNoQueue: the queue that was asked for is not there.
var ErrNoQueue = errors.New("no such queue")

// Records calls each for the records that q chooses, in the order of the log or of the queue. With a topic and a queue
// it goes by the entries of the queue, with a topic and a key by the index, else through the log;
// scan makes it go through the log anyway. A part of the log that holds no record is told by damaged.
func (d *Dir) Records(q Query, scan, withBody bool, each func(*Record) error, damaged func(text string)) error {
	n := int64(0)
	visit := func(at int64, r message.Record, crc error) error {
		if !q.matches(at, r) {
			return nil
		}
		if n++; n > q.Limit {
			return errStop
		}
		rec := d.record(at, r, withBody)
		if crc != nil {
			rec.Damage = crc.Error()
		}
		return each(rec)
	}
	var err error
	switch {
	case !scan && q.Key != "" && q.Topic != "" && q.QueueId < 0 && len(d.index.files) > 0 && d.index.slots > 0:
		err = d.byIndex(q, visit, damaged)
	case !scan && q.Topic != "" && q.QueueId >= 0:
		err = d.byQueue(q, visit, damaged)
	default:
		_, err = d.scan(q.From, "read the log", visitor{
			record: func(at int64, r message.Record, crc error) error {
				if q.To > 0 && at >= q.To {
					return errStop
				}
				return visit(at, r, crc)
			},
			damage: func(file string, s span, cause string) error {
				damaged(fmt.Sprintf("%s: no record at log offsets %d to %d %s", d.short(file), s.from, s.to, cause))
				return nil
			},
			missing: func(s span) error {
				damaged(fmt.Sprintf("the file of log offsets %d to %d is missing", s.from, s.to))
				return nil
			},
		})
	}
	if err == errStop {
		return nil
	}
	return err
}

func (q *Query) matches(at int64, r message.Record) bool {
	if q.Topic != "" && r.Topic() != q.Topic || q.QueueId >= 0 && r.QueueId() != q.QueueId || at < q.From || q.To > 0 && at >= q.To ||
		r.QueueOffset() < q.QueueFrom || q.QueueTo > 0 && r.QueueOffset() >= q.QueueTo ||
		r.StoreTimestamp() < q.Since || q.Until > 0 && r.StoreTimestamp() >= q.Until {
		return false
	}
	return q.Key == "" || hasKey(r, q.Key)
}

// hasKey tells whether a record has a key, or a unique key.
func hasKey(r message.Record, key string) bool {
	if uniq, _ := r.Property(message.PropertyUniqKey); uniq == key {
		return true
	}
	list, _ := r.Property(message.PropertyKeys)
	for k := range strings.SplitSeq(list, message.KeySeparator) {
		if k == key {
			return true
		}
	}
	return false
}

// at reads the record at a log offset.
func (d *Dir) at(phyOffset int64, visit func(int64, message.Record, error) error) error {
	i := d.log.find(phyOffset)
	if i < 0 {
		return &notRecord{text: "the log has no such offset"}
	}
	r, err := d.readLog(i)
	if err != nil {
		return err
	}
	defer r.close()
	r.step = 4096
	rec, crc, err := r.record(phyOffset)
	if err != nil {
		return err
	}
	return visit(phyOffset, rec, crc)
}

func (d *Dir) byQueue(q Query, visit func(int64, message.Record, error) error, damaged func(string)) error {
	return d.entries(q, func(e *QueueEntry) error {
		if e.Blank || e.PhyOffset < d.log.min() {
			return nil
		}
		var not *notRecord
		err := d.at(e.PhyOffset, visit)
		if errors.As(err, &not) {
			damaged(fmt.Sprintf("queue offset %d: log offset %d: %v", e.QueueOffset, e.PhyOffset, err))
			return nil
		}
		return err
	})
}

// byIndex goes by the chains of a key's slot.
func (d *Dir) byIndex(q Query, visit func(int64, message.Record, error) error, damaged func(string)) error {
	hash := index.KeyHash(q.Topic, q.Key)
	last := int64(-1)
	for i := range d.index.files {
		offsets, err := d.chain(&d.index.files[i], hash)
		if err != nil {
			return err
		}
		for n := len(offsets) - 1; n >= 0; n-- {
			at := offsets[n]
			if at < d.log.min() || at == last {
				continue
			}
			last = at
			var not *notRecord
			if err := d.at(at, visit); errors.As(err, &not) {
				damaged(fmt.Sprintf("%s: log offset %d: %v", d.short(d.index.files[i].path), at, err))
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// chain lists the log offsets of a hash in one file, newest first.
func (d *Dir) chain(f *indexFile, hash int32) ([]int64, error) {
	in, err := d.fs.OpenRead(f.path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	x := &d.index
	var b [index.EntrySize]byte
	if err := readFull(in, f.path, b[:index.SlotSize], index.HeaderSize+int64(hash%x.slots)*index.SlotSize); err != nil {
		return nil, err
	}
	var offsets []int64
	for k, before := int32(binary.BigEndian.Uint32(b[:])), f.header.IndexCount; k > 0 && k < before; { // it leads downwards, so it ends
		if err := readFull(in, f.path, b[:], x.entryAt(k)); err != nil {
			return nil, err
		}
		e := index.DecodeFileEntry(b[:])
		if e.KeyHash == hash {
			offsets = append(offsets, e.PhyOffset)
		}
		k, before = e.Previous, k
	}
	return offsets, nil
}

// record is a record with its strings copied.
func (d *Dir) record(at int64, r message.Record, withBody bool) *Record {
	m := r.Message()
	rec := &Record{
		PhyOffset: at, Size: r.Size(), Topic: m.Topic, QueueId: m.QueueId, QueueOffset: m.QueueOffset, OffsetMsgId: m.OffsetMsgId(),
		Flag: m.Flag, SysFlag: m.SysFlag, BornTimestamp: m.BornTimestamp, BornHost: m.BornHost.String(), StoreTimestamp: m.StoreTimestamp,
		StoreHost: m.StoreHost.String(), ReconsumeTimes: m.ReconsumeTimes, PreparedTransactionOffset: m.PreparedTransactionOffset,
		BodyCRC: r.BodyCRC(), BodySize: len(m.Body), Properties: map[string]string{},
	}
	if i := d.log.find(at); i >= 0 {
		rec.File, rec.FileOffset = d.short(d.log.files[i].path), at-d.log.files[i].start
	}
	message.EachProperty(m.Properties, func(name, value string) bool {
		rec.Properties[name] = value
		return true
	})
	if withBody {
		body := inflate(m.SysFlag, m.Body)
		if utf8.Valid(body) {
			text := string(body)
			rec.Body = &text
		} else {
			rec.BodyBase64 = body
		}
	}
	return rec
}

// maxInflated bounds what a body may become.
const maxInflated = 64 << 20

// inflate is a body as it was sent, when it was compressed with zlib; else as it is stored.
func inflate(sysFlag int32, body []byte) []byte {
	if sysFlag&message.Compressed == 0 || message.CompressionType(sysFlag) != message.CompressionZLIB {
		return body
	}
	z, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		return body
	}
	defer z.Close()
	plain, err := io.ReadAll(io.LimitReader(z, maxInflated))
	if err != nil {
		return body
	}
	return plain
}

// QueueEntries calls each for the entries of a queue, blank ones too.
func (d *Dir) QueueEntries(q Query, each func(*QueueEntry) error) error {
	n := int64(0)
	err := d.entries(q, func(e *QueueEntry) error {
		if n++; n > q.Limit {
			return errStop
		}
		return each(e)
	})
	if err == errStop {
		return nil
	}
	return err
}

func (d *Dir) entries(q Query, each func(*QueueEntry) error) error {
	queue := d.queues.find(q.Topic, q.QueueId)
	if queue == nil || len(queue.files) == 0 {
		return fmt.Errorf("%w: topic %s, queue %d", ErrNoQueue, q.Topic, q.QueueId)
	}
	first, end, err := d.bounds(queue)
	if err != nil {
		return err
	}
	if q.QueueTo > 0 {
		end = min(end, q.QueueTo)
	}
	for k := max(first, q.QueueFrom); k < end; k++ {
		e, ok, err := d.look(queue, k)
		if err != nil {
			return err
		}
		if !ok || q.From > 0 && e.PhyOffset < q.From || q.To > 0 && e.PhyOffset >= q.To {
			continue
		}
		entry := &QueueEntry{Topic: q.Topic, QueueId: q.QueueId, QueueOffset: k, PhyOffset: e.PhyOffset, Size: e.Size, TagsCode: e.TagsCode, Blank: e.IsBlank()}
		entry.File, entry.FileOffset = d.place(queue, k)
		if e.IsExtAddress() {
			entry.Unit = d.unit(queue, e.TagsCode)
		}
		if err := each(entry); err != nil {
			return err
		}
	}
	return nil
}

// ErrIndexSize: nothing tells how many hash slots the index files have.
var ErrIndexSize = errors.New("the number of hash slots of the index files is unknown; give broker.conf with -c")

// IndexEntries calls each for the entries of the index, oldest first; with a topic and a key for those of its hash, in
// range of log offsets.
func (d *Dir) IndexEntries(q Query, each func(*IndexEntry) error) error {
	n := int64(0)
	hash := index.KeyHash(q.Topic, q.Key)
	err := d.indexEntries(func(e *IndexEntry) error {
		if q.Key != "" && e.KeyHash != hash || e.PhyOffset < q.From || q.To > 0 && e.PhyOffset >= q.To {
			return nil
		}
		if n++; n > q.Limit {
			return errStop
		}
		return each(e)
	})
	if err == errStop {
		return nil
	}
	return err
}

func (d *Dir) indexEntries(each func(*IndexEntry) error) error {
	if len(d.index.files) > 0 && d.index.slots == 0 {
		return ErrIndexSize
	}
	r := indexReader{d: d, endOf: func(*indexFile) error { return nil }}
	defer r.close()
	for {
		e, p, err := r.read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(&IndexEntry{d.short(p.f.path), p.k, d.index.entryAt(p.k), e.KeyHash, e.PhyOffset, p.f.header.BeginTimestamp + int64(e.Seconds)*1000, e.Previous}); err != nil {
			return err
		}
	}
}
