package inspect

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"rocketd/protocol/message"
	"rocketd/store/consumequeue"
)

const (
	// maxGap is the widest gap between two records of a queue that is believed in; a wider one is a damaged header.
	maxGap = 1 << 20
	// maxSuspects is how many ranges of doubtful entries are told apart in one queue.
	maxSuspects = 64
	// behindEnd is how many bytes behind a queue's end must be zeros for the rest to be left unread: a page.
	behindEnd = 4096
)

// queueCheck is what the log told about one queue. Positions are queue offsets.
type queueCheck struct {
	first, next int64 // of the records met; first -1: none
	gaps        []gap
	suspects    []suspect
	restarts    int
}

// gap is queue offsets of which the log has no records; at is the log offset of the record behind it.
type gap struct {
	span
	at int64
}

// suspect is a range of queue offsets whose records have not the entries that they should, for one reason. It is
// forgiven when offsets begin again in it: the topic was deleted and made anew, and the entries are the newer records'.
type suspect struct {
	from, to int64
	kind     string
	text     string // about the first
	phy      int64  // of the first
}

// queueRecord checks a record's entry.
func (v *verify) queueRecord(at int64, r message.Record) error {
	if !message.Queued(r.SysFlag()) {
		return nil
	}
	topic := r.Topic()
	if topic == "" || topic == "." || topic == ".." || strings.ContainsAny(topic, "/\x00") {
		v.report.add(v.logFinding(RecordTopic, at, fmt.Sprintf("the topic %q can't be the name of a folder; the record is in no queue", topic)))
		v.bad(at, r)
		return nil
	}
	q := v.d.queues.find(topic, r.QueueId())
	if q == nil {
		q = v.d.queues.add(topic, r.QueueId())
	}
	tags, n := v.tagsCode(r), r.QueueOffset()
	if n, err := v.renumber(q, n, at, r); err != nil {
		return err
	} else if n >= 0 {
		if err := v.expect(q, n, at, int32(r.Size()), tags, r.StoreTimestamp()); err != nil {
			return err
		}
	}
	names, ok := r.Property(message.PropertyInnerMultiDispatch)
	if !ok {
		return nil
	}
	offsets, _ := r.Property(message.PropertyInnerMultiQueueOffset)
	return v.multiDispatched(names, offsets, at, r, tags)
}

// multiDispatched checks the entries of a record in light message queues. Whether the broker has the feature switched
// on nothing says but the queues themselves.
func (v *verify) multiDispatched(names, offsets string, at int64, r message.Record, tags int64) error {
	list := strings.Split(offsets, ",")
	for i, name := range strings.Split(names, ",") {
		queueId := r.QueueId()
		if strings.HasPrefix(name, message.LmqTopicPrefix) {
			queueId = 0
		}
		q := v.d.queues.find(name, queueId)
		if q == nil || len(q.files) == 0 || i >= len(list) {
			continue
		}
		n, err := strconv.ParseInt(list[i], 10, 64)
		if err != nil {
			continue
		}
		if err := v.expect(q, n, at, int32(r.Size()), tags, r.StoreTimestamp()); err != nil {
			return err
		}
	}
	return nil
}

// tagsCode is what a record's entry must have (CommitLog#checkMessageAndReturnSize of 4.9.8).
func (v *verify) tagsCode(r message.Record) int64 {
	if r.Topic() == message.TopicSchedule {
		if text, ok := r.Property(message.PropertyDelayTimeLevel); ok {
			if level, err := strconv.ParseInt(text, 10, 32); err == nil && level > 0 {
				return v.d.deliver(int(level), r.StoreTimestamp())
			}
		}
	}
	if r.Topic() == message.TopicTimer {
		if code := message.TimerCode(r.Properties()); code != 0 {
			return code
		}
	}
	return message.TagsCode(r.Properties())
}

// renumber is the queue offset that a record with offset n has: that which its queue gives it, when the queue goes on
// with it and only the record, whose header no checksum covers, says otherwise. -1: it says what can't be.
func (v *verify) renumber(q *queue, n, at int64, r message.Record) (int64, error) {
	c := &q.check
	if c.first < 0 && n >= 0 && n <= consumequeue.MaxQueueOffset || n == c.next && c.first >= 0 {
		return n, nil
	}
	next := max(c.next, 0)
	e, ok, err := v.d.entry(q, next)
	if err != nil {
		return 0, err
	}
	f := v.ofQueue(v.logFinding(RecordOffset, at, ""), q, n)
	switch {
	case ok && e.PhyOffset == at && int(e.Size) == r.Size():
		f.Text = fmt.Sprintf("the record says that it is number %d of its queue, the queue has it at %d: a damaged header", n, next)
		v.damage.renumbered = append(v.damage.renumbered, renumbered{at, next})
		n = next
	case n < 0 || n > consumequeue.MaxQueueOffset || c.first >= 0 && n-c.next > maxGap:
		f.Text = fmt.Sprintf("the record says that it is number %d of its queue, which has %d before it: a damaged header", n, c.next)
		v.bad(at, r)
		n = -1
	default:
		return n, nil
	}
	v.report.add(f)
	return n, nil
}

// expect checks that entry n of a queue is that of the record at a log offset.
func (v *verify) expect(q *queue, n, at int64, size int32, tags, storeTimestamp int64) error {
	c := &q.check
	switch {
	case c.first < 0:
		c.first = n
	case n < c.next:
		c.restart(n)
	case n > c.next:
		c.gaps = append(c.gaps, gap{span{c.next, n}, at})
	}
	c.next = n + 1
	e, ok, err := v.d.entry(q, n)
	if err != nil {
		return err
	}
	kind, text := "", ""
	switch {
	case !ok || !valid(e) || e.IsBlank():
		kind, text = QueueEntryMissing, "the record has no entry in its queue"
	case e.PhyOffset != at || e.Size != size:
		kind, text = QueueEntryWrong, fmt.Sprintf("the entry is of %d bytes at log offset %d, the record has %d at %d", e.Size, e.PhyOffset, size, at)
	case e.IsExtAddress():
		kind, text = v.extended(q, e.TagsCode, tags, storeTimestamp)
	case e.TagsCode != tags && q.topic == message.TopicSchedule:
		kind, text = QueueEntryTags, fmt.Sprintf("the time of delivery is %d, by messageDelayLevel it is %d (if other levels were configured, give broker.conf with -c)", e.TagsCode, tags)
	case e.TagsCode != tags && q.topic == message.TopicTimer && e.TagsCode == int64(int32(e.TagsCode)):
		return nil // an official broker has made the entry again; the broker reads the record then
	case e.TagsCode != tags:
		kind, text = QueueEntryTags, fmt.Sprintf("the tagsCode is %d, that of the record is %d", e.TagsCode, tags)
	}
	if kind == "" {
		return nil
	}
	if v.isPending(at) {
		v.pending++
		return nil
	}
	c.suspect(kind, text, n, at)
	return nil
}

func (v *verify) ofQueue(f Finding, q *queue, n int64) Finding {
	id := q.queueId
	f.Topic, f.QueueId, f.QueueOffset = q.topic, &id, &n
	return f
}

// suspect notes a doubtful entry.
func (c *queueCheck) suspect(kind, text string, n, at int64) {
	if k := len(c.suspects); k > 0 {
		last := &c.suspects[k-1]
		if last.kind == kind && last.to == n || k == maxSuspects {
			last.to = n + 1
			return
		}
	}
	c.suspects = append(c.suspects, suspect{n, n + 1, kind, text, at})
}

// restart: the record that comes has a queue offset that was given before. What was from there on is superseded.
func (c *queueCheck) restart(n int64) {
	c.restarts++
	c.first = min(c.first, n)
	keep := c.suspects[:0]
	for _, s := range c.suspects {
		if s.to = min(s.to, n); s.from < s.to {
			keep = append(keep, s)
		}
	}
	c.suspects = keep
	gaps := c.gaps[:0]
	for _, g := range c.gaps {
		if g.to = min(g.to, n); g.from < g.to {
			gaps = append(gaps, g)
		}
	}
	c.gaps = gaps
}

// checkQueues looks at the queues' files and at the entries that the log has not asked for.
func (v *verify) checkQueues() (err error) {
	t := &v.d.queues
	for _, name := range t.stray {
		v.report.note("%s is not a consume queue's", v.d.short(name))
	}
	all, done, deleted, restarts := int64(t.len()), int64(0), map[string]bool{}, 0
	t.each(func(q *queue) bool {
		v.d.progress("verify the queues", done, all)
		done++
		restarts += q.check.restarts
		before := v.report.Total()
		if len(q.files) == 0 && len(q.misnamed) == 0 && len(q.stray) == 0 {
			v.withoutFiles(q, deleted)
		} else if err = v.queueFiles(q); err == nil {
			v.suspects(q)
			err = v.unasked(q)
		}
		if v.report.Total() > before {
			v.damage.queues = append(v.damage.queues, q)
		}
		return err == nil
	})
	if len(deleted) > 0 {
		v.report.note("the log has records of %d topics that are neither in topics.json nor have queues: deleted topics", len(deleted))
	}
	if restarts > 0 {
		v.report.note("%d times the offsets of a queue begin again: topics that were deleted and made anew", restarts)
	}
	return err
}

// withoutFiles judges a queue of which there are records and no files.
func (v *verify) withoutFiles(q *queue, deleted map[string]bool) {
	if len(q.check.suspects) == 0 {
		return
	}
	if v.config.topics != nil && !v.config.topics[q.topic] && q.topic != message.TopicTransOpHalf {
		deleted[q.topic] = true
		return
	}
	f := Finding{Kind: QueueMissing, File: v.d.short(v.d.queues.folder(q))}
	f.Text = fmt.Sprintf("the queue has no files, the log has its records from offset %d to %d", q.check.first, q.check.next-1)
	id := q.queueId
	f.Topic, f.QueueId = q.topic, &id
	v.report.add(f)
}

// queueFiles looks at the names and sizes of a queue's files.
func (v *verify) queueFiles(q *queue) error {
	d, t := v.d, &v.d.queues
	id, dir := q.queueId, d.short(t.folder(q))
	add := func(kind, file string, offset int64, text string) {
		v.report.add(Finding{Kind: kind, File: path.Join(dir, file), Offset: offset, Topic: q.topic, QueueId: &id, Text: text})
	}
	for _, name := range q.stray {
		add(QueueFileName, name, 0, "not a file of a consume queue; the official broker does not start with it")
	}
	for _, name := range q.misnamed {
		add(QueueFileName, name, 0, fmt.Sprintf("its offset is not a multiple of the file size %d", t.perFile*consumequeue.EntrySize))
	}
	size := t.perFile * consumequeue.EntrySize
	for i, f := range q.files {
		if i > 0 && f.start != q.files[i-1].start+t.perFile {
			add(QueueFileMissing, fmt.Sprintf("%020d", (q.files[i-1].start+t.perFile)*consumequeue.EntrySize), 0, "the file is missing between two others")
		}
		if f.length != size && !(d.running && f.length == 0) { // it is being made
			add(QueueFileSize, f.name, min(f.length, size), fmt.Sprintf("it has %d bytes, not %d; the official broker does not start with it", f.length, size))
		}
	}
	return nil
}

// suspects reports the doubtful entries of a queue that were not forgiven.
func (v *verify) suspects(q *queue) {
	for _, s := range q.check.suspects {
		f := v.ofQueue(Finding{Kind: s.kind, PhyOffset: &s.phy, Text: s.text}, q, s.from)
		f.File, f.Offset = v.d.place(q, s.from)
		if n := s.to - s.from; n > 1 {
			f.Text += fmt.Sprintf("; so it is up to queue offset %d", s.to-1)
		}
		v.report.add(f)
	}
}

// unasked looks at the entries of a queue for which no record has asked: before the first, in gaps, behind the last.
func (v *verify) unasked(q *queue) error {
	c := &q.check
	if len(q.files) == 0 {
		return nil
	}
	if c.first < 0 { // all its records have expired
		first, end, err := v.d.bounds(q)
		if err != nil {
			return err
		}
		from, err := v.d.minOffset(q, first, end, v.d.log.min())
		if err != nil {
			return err
		}
		if err := v.strays(q, from, end, false); err != nil {
			return err
		}
		return v.strays(q, end, end, true)
	}
	if err := v.strays(q, q.files[0].start, c.first, false); err != nil {
		return err
	}
	for _, g := range c.gaps {
		if err := v.gap(q, g); err != nil {
			return err
		}
	}
	return v.strays(q, c.next, c.next, true)
}

// gap judges queue offsets without records. Where the queue has blank entries for them the loss has been dealt with: at
// the time, by a broker or a repair.
func (v *verify) gap(q *queue, g gap) error {
	if v.isPending(g.at) {
		return nil
	}
	for k := g.from; k < g.to; k++ {
		e, ok, err := v.d.look(q, k)
		if err != nil {
			return err
		}
		if ok && e.IsBlank() {
			continue
		}
		f := v.logFinding(QueueOffsets, g.at, fmt.Sprintf("the log has no records for the %d queue offsets before this one, from %d on", g.to-g.from, g.from))
		v.report.add(v.ofQueue(f, q, g.to))
		return v.strays(q, g.from, g.to, false)
	}
	v.lost += g.to - g.from
	return nil
}

// strays reports what stands in [from, to) and is neither blank nor the entry of a record that has expired. With behind
// it looks at what follows instead, up to a page of zeros.
func (v *verify) strays(q *queue, from, to int64, behind bool) error {
	var first consumequeue.Entry
	at, n, zero := int64(-1), int64(0), 0
	for k := from; behind || k < to; k++ {
		e, ok, err := v.d.look(q, k)
		if err != nil {
			return err
		}
		if !ok { // a file lacks, or is short: told already
			if behind {
				break
			}
			k = v.nextEntry(q, k) - 1
			continue
		}
		if behind && e == (consumequeue.Entry{}) {
			if zero += consumequeue.EntrySize; zero >= behindEnd {
				break
			}
			continue
		}
		zero = 0
		if !behind && (e.IsBlank() || valid(e) && e.PhyOffset < v.d.log.min()) {
			continue
		}
		if valid(e) && v.isPending(e.PhyOffset) {
			v.stale++
			continue
		}
		v.beyond = v.beyond || valid(e) && !e.IsBlank() && e.PhyOffset >= v.scan.end
		if n++; at < 0 {
			at, first = k, e
		}
	}
	if n == 0 {
		return nil
	}
	text := ""
	switch {
	case first == (consumequeue.Entry{}):
		text = "there is no entry; a broker takes this for the end of the queue"
	case !valid(first):
		text = fmt.Sprintf("no entry: %d bytes at log offset %d", first.Size, first.PhyOffset)
	case first.PhyOffset >= v.scan.end:
		text = fmt.Sprintf("the entry points to log offset %d, behind the end of the log, %d", first.PhyOffset, v.scan.end)
	default:
		text = fmt.Sprintf("the entry points to log offset %d, where the log has no record of this queue offset", first.PhyOffset)
	}
	if n > 1 {
		text += fmt.Sprintf("; %d more like it", n-1)
	}
	f := v.ofQueue(Finding{Kind: QueueEntryStray, Text: text}, q, at)
	f.File, f.Offset = v.d.place(q, at)
	v.report.add(f)
	return nil
}

// nextEntry is the first place behind k that a file of the queue has.
func (v *verify) nextEntry(q *queue, k int64) int64 {
	start := k - k%v.d.queues.perFile
	i := slices.IndexFunc(q.files, func(f queueFile) bool { return f.start > start })
	if i < 0 {
		return int64(1) << 62
	}
	return q.files[i].start
}
