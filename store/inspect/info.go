package inspect

import (
	"errors"
	"path"

	"rocketd/protocol/message"
	"rocketd/store/segment"
)

// Info is what is in a store directory.
type Info struct {
	Dir          string         `json:"dir"`
	Running      bool           `json:"running"`   // a broker holds the lock
	CleanStop    bool           `json:"cleanStop"` // there is no abort file
	Log          LogInfo        `json:"commitLog"`
	Checkpoint   CheckpointInfo `json:"checkpoint"`
	RecoveryFrom *int64         `json:"recoveryFrom,omitempty"` // where the next start begins, after a crash
	QueueFile    int64          `json:"queueFileSize"`
	Topics       []TopicInfo    `json:"topics"`
	Index        IndexInfo      `json:"index"`
	Config       []ConfigInfo   `json:"config"`
	Aside        []AsideInfo    `json:"aside"` // records that recovery took out of the log
	Extended     ExtendedInfo   `json:"consumeQueueExt"`
}

// LogInfo is the commit log.
type LogInfo struct {
	Dir            string    `json:"dir"`
	FileSize       int64     `json:"fileSize"`
	MinPhyOffset   int64     `json:"minPhyOffset"`
	MaxPhyOffset   int64     `json:"maxPhyOffset"`
	FirstTimestamp int64     `json:"firstStoreTimestamp"` // ms, 0 none
	LastTimestamp  int64     `json:"lastStoreTimestamp"`
	Files          []LogFile `json:"files"`
}

// LogFile is one file of the log.
type LogFile struct {
	Name           string `json:"name"`
	Size           int64  `json:"size"`
	FirstTimestamp int64  `json:"firstStoreTimestamp"` // of its first record, ms; 0: it begins with none
	Modified       int64  `json:"modified"`            // ms
}

// CheckpointInfo is the checkpoint file. Times are ms.
type CheckpointInfo struct {
	There              bool  `json:"there"`
	PhysicMsgTimestamp int64 `json:"physicMsgTimestamp"`
	LogicsMsgTimestamp int64 `json:"logicsMsgTimestamp"`
	IndexMsgTimestamp  int64 `json:"indexMsgTimestamp"`
	Dispatched         int64 `json:"dispatched"` // ours: log offset before which all is durable; -1: the official broker wrote last
}

// TopicInfo is the queues of a topic.
type TopicInfo struct {
	Topic  string      `json:"topic"`
	Queues []QueueInfo `json:"queues"`
}

// QueueInfo is one queue: offsets, the log offsets of its first and behind its last record, files.
type QueueInfo struct {
	QueueId      int32 `json:"queueId"`
	MinOffset    int64 `json:"minOffset"`
	MaxOffset    int64 `json:"maxOffset"`
	MinPhyOffset int64 `json:"minPhyOffset"`
	MaxPhyOffset int64 `json:"maxPhyOffset"`
	Files        int   `json:"files"`
}

// IndexInfo is the index; 0 slots: no file tells how many.
type IndexInfo struct {
	HashSlots  int32           `json:"maxHashSlotNum"`
	MaxEntries int32           `json:"maxIndexNum"`
	Files      []IndexFileInfo `json:"files"`
}

// IndexFileInfo is one index file.
type IndexFileInfo struct {
	Name           string `json:"name"`
	Size           int64  `json:"size"`
	BeginTimestamp int64  `json:"beginTimestamp"`
	EndTimestamp   int64  `json:"endTimestamp"`
	BeginPhyOffset int64  `json:"beginPhyOffset"`
	EndPhyOffset   int64  `json:"endPhyOffset"`
	Slots          int32  `json:"hashSlotCount"`
	Entries        int32  `json:"entries"`
}

// ConfigInfo is one file in ROOT/config and its .bak.
type ConfigInfo struct {
	Name  string `json:"name"`
	Size  int64  `json:"size"`
	Count int    `json:"count"`
	What  string `json:"what"` // that is counted
	Error string `json:"error,omitempty"`
	Bak   string `json:"bak"` // good, none, or why it can't be read
}

// Info looks at everything but the messages: of the log only the last file with records is read through.
func (d *Dir) Info() (*Info, error) {
	i := &Info{Dir: d.o.Root, Running: d.running, CleanStop: !d.abort, Topics: []TopicInfo{}, Config: []ConfigInfo{}}
	if err := d.logInfo(&i.Log); err != nil {
		return nil, err
	}
	c := d.checkpoint
	there, err := d.exists(d.path("checkpoint"))
	if err != nil {
		return nil, err
	}
	i.Checkpoint = CheckpointInfo{there, c.PhysicMsgTimestamp, c.LogicsMsgTimestamp, c.IndexMsgTimestamp, c.Dispatched}
	if d.abort {
		from, err := d.recoveryStart()
		if err != nil {
			return nil, err
		}
		i.RecoveryFrom = &from
	}
	i.QueueFile = d.queues.perFile * 20
	if i.Topics, err = d.topicInfos(i.Log.MinPhyOffset); err != nil {
		return nil, err
	}
	i.Index = IndexInfo{d.index.slots, d.index.entries, []IndexFileInfo{}}
	for _, f := range d.index.files {
		h := f.header
		i.Index.Files = append(i.Index.Files, IndexFileInfo{path.Base(f.path), f.length, h.BeginTimestamp, h.EndTimestamp,
			h.BeginPhyOffset, h.EndPhyOffset, h.HashSlotCount, h.IndexCount - 1})
	}
	if i.Config, err = d.configInfos(); err != nil {
		return nil, err
	}
	if i.Aside, err = d.asideInfos(); err != nil {
		return nil, err
	}
	i.Extended, err = d.extendedInfo()
	return i, err
}

func (d *Dir) logInfo(i *LogInfo) error {
	l := &d.log
	*i = LogInfo{Dir: l.dir, FileSize: l.fileSize, MinPhyOffset: l.min(), Files: []LogFile{}}
	from := l.min()
	for n, f := range l.files {
		t, err := d.firstTimestamp(n)
		if err != nil {
			return err
		}
		if t != 0 {
			from = f.start
			if i.FirstTimestamp == 0 {
				i.FirstTimestamp = t
			}
		}
		i.Files = append(i.Files, LogFile{segment.Name(f.start), f.length, t, f.modified.UnixMilli()})
	}
	s, err := d.scan(from, "read the last file of the log", visitor{record: func(_ int64, r message.Record, _ error) error {
		i.LastTimestamp = r.StoreTimestamp()
		return nil
	}})
	if i.MaxPhyOffset = s.end; len(l.files) == 0 {
		i.MaxPhyOffset = 0
	}
	return err
}

func (d *Dir) topicInfos(minPhyOffset int64) (topics []TopicInfo, err error) {
	topics = []TopicInfo{}
	done, all := int64(0), int64(d.queues.len())
	d.queues.each(func(q *queue) bool {
		d.progress("read the queues", done, all)
		done++
		if n := len(topics); n == 0 || topics[n-1].Topic != q.topic {
			topics = append(topics, TopicInfo{Topic: q.topic})
		}
		t := &topics[len(topics)-1]
		var i QueueInfo
		if i, err = d.queueInfo(q, minPhyOffset); err != nil {
			return false
		}
		t.Queues = append(t.Queues, i)
		return true
	})
	return topics, err
}

func (d *Dir) queueInfo(q *queue, minPhyOffset int64) (QueueInfo, error) {
	i := QueueInfo{QueueId: q.queueId, Files: len(q.files)}
	first, end, err := d.bounds(q)
	if err != nil {
		return i, err
	}
	i.MaxOffset = end
	if i.MinOffset, err = d.minOffset(q, first, end, minPhyOffset); err != nil || first == end {
		return i, err
	}
	if e, ok, err := d.look(q, i.MinOffset); err != nil {
		return i, err
	} else if ok && i.MinOffset < end {
		i.MinPhyOffset = e.PhyOffset
	}
	if e, ok, err := d.look(q, end-1); err != nil {
		return i, err
	} else if ok && !e.IsBlank() {
		i.MaxPhyOffset = e.PhyOffset + int64(e.Size)
	}
	return i, nil
}

func (d *Dir) configInfos() ([]ConfigInfo, error) {
	all := []ConfigInfo{}
	for _, c := range configFiles {
		state, err := d.readConfig(c, c.name, new(configData))
		if err != nil {
			return nil, err
		}
		bak, err := d.readConfig(c, c.name+".bak", new(configData))
		if err != nil {
			return nil, err
		}
		if !state.there && !bak.there {
			continue
		}
		i := ConfigInfo{Name: c.name, Size: state.size, Count: state.count, What: c.what, Bak: "good"}
		if state.err == nil && !state.there {
			state.err = errors.New("it is missing")
		}
		if state.err != nil {
			i.Error = state.err.Error()
		}
		if !bak.there {
			i.Bak = "none"
		} else if bak.err != nil {
			i.Bak = bak.err.Error()
		}
		all = append(all, i)
	}
	return all, nil
}
