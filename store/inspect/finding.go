package inspect

import (
	"fmt"
	"strings"
)

// Kinds of findings.
const (
	LogFileMissing    = "log-file-missing"    // a file lacks between two others
	LogFileSize       = "log-file-size"       // a file has not the size of the others, or that of broker.conf
	LogFileName       = "log-file-name"       // a file's name is no multiple of the file size
	RecordCRC         = "record-crc"          // a body is not what was written
	RecordDamaged     = "record-damaged"      // a part of the log, with records behind it, holds none
	RecordTopic       = "record-topic"        // a record's topic can't be the name of a folder
	RecordOffset      = "record-offset"       // a record has another queue offset than its queue gives it
	BlankRecord       = "blank-record"        // the blank record at a file's end has another size than the rest of the file
	TornTail          = "torn-tail"           // behind the last record stands something that is none
	QueueOffsets      = "queue-offsets"       // the log lacks records between two of a queue
	QueueMissing      = "queue-missing"       // a queue of which the log has records has no files
	QueueFileMissing  = "queue-file-missing"  // a file lacks between two others
	QueueFileSize     = "queue-file-size"     // a file has not the size of the others, or that of broker.conf
	QueueFileName     = "queue-file-name"     // a file that does not belong into the folder
	QueueEntryMissing = "queue-entry-missing" // a record has no entry in its queue
	QueueEntryWrong   = "queue-entry-wrong"   // a record's entry is another's, or has another size
	QueueEntryTags    = "queue-entry-tags"    // an entry has not the tagsCode, or time of delivery, of its record
	QueueEntryStray   = "queue-entry-stray"   // an entry of no record
	UnitFile          = "unit-file"           // a file of consumequeue_ext has another size, or a name that is no multiple of it
	UnitChain         = "unit-chain"          // the units of a file of consumequeue_ext do not follow one another
	IndexMissing      = "index-missing"       // there are records with keys and no index files
	IndexFileSize     = "index-file-size"     // a file has another size than slots and entries make it
	IndexHeader       = "index-header"        // a header does not agree with the entries
	IndexEntryWrong   = "index-entry"         // an entry of no record with such a key, or out of order
	IndexChain        = "index-chain"         // an entry, or slot, does not lead to the one that it should
	KeyMissing        = "key-missing"         // a key of a record is not in the index
	ConfigFile        = "config-file"         // a file of configuration is damaged
	CheckpointFile    = "checkpoint"          // the checkpoint is damaged, or promises what is not there
)

// Finding is one thing that is wrong.
type Finding struct {
	Kind        string `json:"kind"`
	File        string `json:"file,omitempty"` // from the store's directory on
	Offset      int64  `json:"offset"`         // of the byte in the file
	Topic       string `json:"topic,omitempty"`
	QueueId     *int32 `json:"queueId,omitempty"`
	QueueOffset *int64 `json:"queueOffset,omitempty"`
	PhyOffset   *int64 `json:"phyOffset,omitempty"`
	Text        string `json:"text"`
}

// String is the finding on one line.
func (f Finding) String() string {
	var s strings.Builder
	s.WriteString(f.Kind)
	if f.File != "" {
		fmt.Fprintf(&s, " %s at %d", f.File, f.Offset)
	}
	if f.QueueId != nil {
		fmt.Fprintf(&s, " (%s, queue %d", f.Topic, *f.QueueId)
		if f.QueueOffset != nil {
			fmt.Fprintf(&s, ", offset %d", *f.QueueOffset)
		}
		s.WriteByte(')')
	}
	if f.PhyOffset != nil {
		fmt.Fprintf(&s, " (log offset %d)", *f.PhyOffset)
	}
	return s.String() + ": " + f.Text
}

// Report is what Verify found.
type Report struct {
	Dir          string         `json:"dir"`
	CleanStop    bool           `json:"cleanStop"`
	Running      bool           `json:"running"`
	MinPhyOffset int64          `json:"minPhyOffset"`
	MaxPhyOffset int64          `json:"maxPhyOffset"`
	Records      int64          `json:"records"`
	Queues       int            `json:"queues"`
	Keys         int64          `json:"keys"` // of records, looked for in the index
	Findings     []Finding      `json:"findings"`
	Counts       map[string]int `json:"counts"` // of all findings by kind, of which Findings has the first of each
	Notes        []string       `json:"notes"`

	limit int
}

// Clean tells whether there are no findings.
func (r *Report) Clean() bool { return len(r.Counts) == 0 }

// Total is the number of findings.
func (r *Report) Total() (n int) {
	for _, k := range r.Counts {
		n += k
	}
	return n
}

func (r *Report) add(f Finding) {
	if r.Counts[f.Kind]++; r.Counts[f.Kind] <= r.limit {
		r.Findings = append(r.Findings, f)
	}
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}
