package inspect

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strconv"
	"strings"

	"rocketd/protocol/message"
	"rocketd/store/consumequeue"
	"rocketd/store/index"
	"rocketd/store/vfs"
)

// flushBytes is after how many bytes of the log what is made anew is written, so that memory stays small.
const flushBytes = 64 << 20

// rebuildQueues makes the queues with findings anew from the log.
func (p *repair) rebuildQueues(v *verify) {
	if len(v.damage.queues) == 0 {
		return
	}
	size := v.d.queues.perFile * consumequeue.EntrySize
	if !v.d.queues.known {
		p.note(Step{What: "leave", File: "consumequeue", Text: "no file tells the size of queue files; give broker.conf with -c, or leave the queues to the next start"})
		return
	}
	if p.r.DryRun {
		for _, q := range v.damage.queues {
			p.step(p.rebuilt(v, q, size), nil)
		}
		return
	}
	scratch := v.d.path("consumequeue.repair")
	err := p.fillQueues(v, scratch, int(size))
	for _, q := range v.damage.queues {
		p.step(p.rebuilt(v, q, size), func() error {
			if err != nil {
				return err
			}
			return p.swapQueue(v, q, path.Join(scratch, q.topic, strconv.Itoa(int(q.queueId))))
		})
	}
	if err := errors.Join(p.o.FS.RemoveAll(scratch), p.o.FS.SyncDir(v.d.o.Root)); err != nil {
		p.failed = err
	}
}

func (p *repair) rebuilt(v *verify, q *queue, size int64) Step {
	text := "made anew from the log"
	if c := q.check; c.first >= 0 {
		text += fmt.Sprintf(": queue offsets %d to %d", c.first, c.next-1)
	} else {
		text += ": no records, its offsets go on"
	}
	return Step{What: "rebuild", File: v.d.short(v.d.queues.folder(q)), Text: fmt.Sprintf("%s, in files of %d bytes", text, size)}
}

// fillQueues goes through the log and writes the queues below dir.
func (p *repair) fillQueues(v *verify, dir string, size int) error {
	d := v.d
	if err := p.o.FS.RemoveAll(dir); err != nil {
		return err
	}
	t, err := consumequeue.Open(consumequeue.Options{FS: p.o.FS, Dir: dir, FileSize: size, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	wanted := make(map[*queue]bool, len(v.damage.queues))
	for _, q := range v.damage.queues {
		wanted[q] = true
		if q.check.first >= 0 {
			continue
		}
		// All its records have expired: its last entry keeps the place.
		_, end, err := d.bounds(q)
		if err != nil {
			return err
		}
		for k := end - 1; k >= 0 && k >= end-1024; k-- {
			e, ok, err := d.look(q, k)
			if err != nil {
				return err
			}
			if ok && valid(e) && !e.IsBlank() && e.PhyOffset < d.log.min() {
				if err := t.Append(q.topic, q.queueId, k, e); err != nil {
					return err
				}
				break
			}
		}
	}
	flushed := int64(0)
	_, err = d.scan(0, "rebuild the queues", visitor{record: func(at int64, r message.Record, _ error) error {
		if at-flushed > flushBytes {
			flushed = at
			if err := t.Flush(0); err != nil {
				return err
			}
		}
		return p.appendEntries(v, t, wanted, at, r)
	}})
	return errors.Join(err, t.Close())
}

// appendEntries adds a record to those of its queues that are wanted.
func (p *repair) appendEntries(v *verify, t *consumequeue.Table, wanted map[*queue]bool, at int64, r message.Record) error {
	if !message.Queued(r.SysFlag()) {
		return nil
	}
	put := func(topic string, queueId int32, n int64) error {
		q := v.d.queues.find(topic, queueId)
		if q == nil || !wanted[q] {
			return nil
		}
		err := t.Append(q.topic, queueId, n, consumequeue.Entry{PhyOffset: at, Size: int32(r.Size()), TagsCode: v.tagsCode(r)})
		if errors.Is(err, consumequeue.ErrGap) { // a damaged header; the finding stays
			return nil
		}
		return err
	}
	if err := put(r.Topic(), r.QueueId(), r.QueueOffset()); err != nil {
		return err
	}
	names, ok := r.Property(message.PropertyInnerMultiDispatch)
	if !ok {
		return nil
	}
	list, _ := r.Property(message.PropertyInnerMultiQueueOffset)
	offsets := strings.Split(list, ",")
	for i, name := range strings.Split(names, ",") {
		queueId := r.QueueId()
		if strings.HasPrefix(name, message.LmqTopicPrefix) {
			queueId = 0
		}
		if i < len(offsets) {
			if n, err := strconv.ParseInt(offsets[i], 10, 64); err == nil {
				if err := put(name, queueId, n); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// swapQueue puts what was made anew in the place of a queue's folder.
func (p *repair) swapQueue(v *verify, q *queue, made string) error {
	old := v.d.queues.folder(q)
	there, err := v.d.exists(made)
	if err != nil {
		return err
	}
	if err := vfs.MkdirAllSync(p.o.FS, path.Dir(old)); err != nil {
		return err
	}
	if err := p.o.FS.RemoveAll(old); err != nil {
		return err
	}
	if there {
		if err := p.o.FS.Rename(made, old); err != nil {
			return err
		}
	}
	return errors.Join(p.o.FS.SyncDir(path.Dir(old)), p.dropUnits(v, q))
}

// rebuildIndex makes the index anew from the log.
func (p *repair) rebuildIndex(v *verify) {
	x := &v.d.index
	if !v.damage.index {
		return
	}
	if x.slots == 0 {
		p.note(Step{What: "leave", File: "index", Text: "no file tells the size of index files; give broker.conf with -c, or leave the index to the next start"})
		return
	}
	s := Step{What: "rebuild", File: v.d.short(x.dir), Text: fmt.Sprintf("made anew from the log, in files of %d slots and %d entries", x.slots, x.entries)}
	p.step(s, func() error {
		scratch := v.d.path("index.repair")
		if err := p.o.FS.RemoveAll(scratch); err != nil {
			return err
		}
		if err := p.fillIndex(v, scratch); err != nil {
			return err
		}
		if err := p.o.FS.RemoveAll(x.dir); err != nil {
			return err
		}
		there, err := v.d.exists(scratch)
		if err == nil && there {
			err = p.o.FS.Rename(scratch, x.dir)
		}
		return errors.Join(err, p.o.FS.SyncDir(v.d.o.Root))
	})
}

func (p *repair) fillIndex(v *verify, dir string) error {
	x := &v.d.index
	made, err := index.Open(index.Options{FS: p.o.FS, Dir: dir, MaxHashSlotNum: int(x.slots), MaxIndexNum: int(x.entries),
		Clock: v.d.o.Clock, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	flushed := int64(0)
	_, err = v.d.scan(0, "rebuild the index", visitor{record: func(at int64, r message.Record, _ error) error {
		if message.TransactionValue(r.SysFlag()) == message.TransactionRollback {
			return nil
		}
		if at-flushed > flushBytes {
			flushed = at
			if _, err := made.Flush(false); err != nil {
				return err
			}
		}
		uniq, _ := r.Property(message.PropertyUniqKey)
		list, _ := r.Property(message.PropertyKeys)
		return made.Put(r.Topic(), uniq, list, at, r.StoreTimestamp())
	}})
	_, closeErr := made.Close()
	return errors.Join(err, closeErr)
}
