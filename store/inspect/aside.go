package inspect

import (
	"crypto/sha256"
	"path"
	"slices"
	"strings"

	"rocketd/protocol/message"
	"rocketd/store/segment"
)

// Names of folders of records that a recovery has found behind a damaged place and taken out of the log, by the log offset
// at which it ended the log; restored: Repair has put them back since.
const (
	asidePrefix    = "damaged-"
	restoredPrefix = "restored-"
)

// AsideInfo is one folder of records that recovery has put aside.
type AsideInfo struct {
	Dir            string `json:"dir"`
	PhyOffset      int64  `json:"phyOffset"` // where the log ended
	Restored       bool   `json:"restored"`
	Files          int    `json:"files"`
	Records        int64  `json:"records"`             // that are whole
	Messages       int64  `json:"messages"`            // of them, that a restore stores again
	FirstTimestamp int64  `json:"firstStoreTimestamp"` // ms, 0 none
	LastTimestamp  int64  `json:"lastStoreTimestamp"`
}

// asideFolders lists the folders with one of these prefixes, in order of their log offsets.
func (d *Dir) asideFolders(prefixes ...string) ([]AsideInfo, error) {
	entries, err := d.list(d.o.Root)
	if err != nil {
		return nil, err
	}
	all := []AsideInfo{}
	for _, e := range entries {
		for _, prefix := range prefixes {
			name, ok := strings.CutPrefix(e.Name(), prefix)
			if at, isName := segment.ParseName(name); ok && isName && e.IsDir() {
				all = append(all, AsideInfo{Dir: e.Name(), PhyOffset: at, Restored: prefix == restoredPrefix})
			}
		}
	}
	return all, nil
}

// asideInfos is what Info says of them.
func (d *Dir) asideInfos() ([]AsideInfo, error) {
	all, err := d.asideFolders(asidePrefix, restoredPrefix)
	for i := range all {
		if err == nil {
			err = d.asideRecords(&all[i], func(message.Record) error { return nil })
		}
	}
	return all, err
}

// asideRecords calls each for the whole records of a folder, each of them once, however many copies there are, and counts.
// A record is valid during the call only.
func (d *Dir) asideRecords(i *AsideInfo, each func(r message.Record) error) error {
	dir := d.path(i.Dir)
	entries, err := d.list(dir)
	if err != nil {
		return err
	}
	// Only where a file was put aside twice can a record be there twice.
	var seen map[[sha256.Size]byte]bool
	for _, e := range entries {
		if strings.Contains(e.Name(), ".") {
			seen = map[[sha256.Size]byte]bool{}
		}
	}
	for _, e := range entries {
		// A second file of the same name has `.2` behind it.
		name, _, _ := strings.Cut(e.Name(), ".")
		start, ok := segment.ParseName(name)
		if !ok || e.IsDir() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		i.Files++
		side := *d
		side.log = commitLog{dir: dir, fileSize: info.Size(), files: []logFile{{path: path.Join(dir, e.Name()), start: start, length: info.Size()}}}
		err = side.wholeRecords(func(r message.Record) error {
			if seen != nil {
				sum := sha256.Sum256(r)
				if seen[sum] {
					return nil
				}
				seen[sum] = true
			}
			i.Records++
			i.LastTimestamp = max(i.LastTimestamp, r.StoreTimestamp())
			if i.FirstTimestamp == 0 || r.StoreTimestamp() < i.FirstTimestamp {
				i.FirstTimestamp = r.StoreTimestamp()
			}
			if !restorable(r) {
				return nil
			}
			i.Messages++
			return each(r)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wholeRecords calls each for the records of a log of one file whose checksum is right, whatever stands between.
func (d *Dir) wholeRecords(each func(r message.Record) error) error {
	in, err := d.readLog(0)
	if err != nil {
		return err
	}
	defer in.close()
	size := d.log.files[0].length
	in.onRead = func(offset int64) { d.progress("read what was put aside", offset-in.start, size) }
	for at := in.start; ; {
		if at, err = in.next(at, anyRecord); err != nil || at < 0 {
			return err
		}
		r, crc, err := in.record(at)
		if err != nil {
			return err
		}
		if crc != nil {
			at++
			continue
		}
		at += int64(r.Size())
		if err := each(r); err != nil {
			return err
		}
	}
}

// restorable tells whether a record is a message that may be stored again. Half messages and what resolves them refer to
// places in the log that are lost; they are left out, as is what enters no queue.
func restorable(r message.Record) bool {
	return message.Queued(r.SysFlag()) && !slices.Contains([]string{message.TopicTransHalf, message.TopicTransOpHalf}, r.Topic())
}

// identity is that of a message wherever it is stored: everything but places and store time.
func identity(m message.Message) [sha256.Size]byte {
	m.QueueOffset, m.PhyOffset, m.StoreTimestamp = 0, 0, 0
	return sha256.Sum256(message.AppendRecord(nil, &m))
}
