package pop

// checkpoint is what one group has popped of one queue at one time and has not yet acknowledged whole. Guarded by the
// lock of the Checkpoints.
type checkpoint struct {
	queue          *Queue
	start, popTime int64
	due            int64   // ms: when what is not acknowledged comes again
	invisible      int64   // ms
	offsets        []int64 // nil: one message, at start
	acked          uint32  // bits
	taking         uint32  // bits whose acknowledgement or change is just being recorded: it came in time
	tries          uint8   // that failed to let it come again
	revived        bool    // taken by the reviver, and in no map or heap any more
	heapAt         int

	record       int64       // queue offset of its record
	recorded     int64       // ms: when it was recorded anew, 0 = never
	older, newer *checkpoint // its list in segments
}

func (c *checkpoint) dueAt() int64 { return c.due }
func (c *checkpoint) place() *int  { return &c.heapAt }

func (c *checkpoint) size() int { return max(1, len(c.offsets)) }

func (c *checkpoint) offset(i int) int64 {
	if c.offsets == nil {
		return c.start
	}
	return c.offsets[i]
}

// bit is the bit of the message at a queue offset, 0 when it is none of these.
func (c *checkpoint) bit(offset int64) uint32 {
	if c.offsets == nil {
		if offset == c.start {
			return 1
		}
		return 0
	}
	for i, o := range c.offsets {
		if o == offset {
			return 1 << uint(i)
		}
	}
	return 0
}

func (c *checkpoint) done() bool { return c.acked == all(c.size()) }

func (c *checkpoint) id() id { return id{c.queue.Key, c.start, c.popTime} }

// image is the checkpoint for its record. next is 0: by now the group's offset has been saved.
func (c *checkpoint) image() *image {
	i := &image{id: c.id(), invisible: c.invisible, acked: c.acked, offsets: c.offsets}
	if c.offsets == nil {
		i.offsets = []int64{c.start}
	}
	return i
}

// segmentRecords is how many records of the log share a list of the checkpoints that need them.
const segmentRecords = 4096

// segments are lists of checkpoints by where their records lie, so that it is known from where on the log is needed,
// and which checkpoints keep its beginning. Each list is a ring, named by any of its members.
type segments struct {
	lists map[int64]*checkpoint
	first int64 // no list is below
}

// add enters a checkpoint by its record.
func (s *segments) add(c *checkpoint) {
	n := c.record / segmentRecords
	if len(s.lists) == 0 || n < s.first {
		s.first = n
	}
	if head := s.lists[n]; head != nil {
		c.newer, c.older = head, head.older
		head.older.newer, head.older = c, c
		return
	}
	c.newer, c.older = c, c
	s.lists[n] = c
}

// remove takes a checkpoint out.
func (s *segments) remove(c *checkpoint) {
	n := c.record / segmentRecords
	if c.newer == c {
		delete(s.lists, n)
	} else {
		c.older.newer, c.newer.older = c.newer, c.older
		if s.lists[n] == c {
			s.lists[n] = c.newer
		}
	}
	c.newer, c.older = nil, nil
}

// needed is the first record that is needed; end when none is.
func (s *segments) needed(end int64) int64 {
	if len(s.lists) == 0 {
		return end
	}
	for s.lists[s.first] == nil {
		s.first++
	}
	return s.first * segmentRecords
}

// oldest is a checkpoint of the first list, nil when there is none below the record before.
func (s *segments) oldest(before int64) *checkpoint {
	if s.needed(before) >= before {
		return nil
	}
	return s.lists[s.first]
}
