// Package doubletest is a store in memory that stands in for a store.Store in tests of what lives on one. It fails, lags and loses
// its oldest part as a test wants it, and notes what is stored and read.
package doubletest

import (
	"slices"
	"sync"
	"time"

	"rocketd/protocol/message"
	"rocketd/store"
	"rocketd/store/commitlog"
)

// RecordSize is how many bytes of the log each message takes, whatever it holds.
const RecordSize = 100

// Queue names a queue.
type Queue struct {
	Topic   string
	QueueId int32
}

// Delivered is a message that was stored in a topic of which the store keeps no queues.
type Delivered struct {
	message.Message
	At time.Time
}

// Store is the double. Its methods may be called at once; a test that looks at a field, or sets one, while others call them holds
// the lock.
type Store struct {
	sync.Mutex

	Queues   map[Queue][]store.Entry
	First    map[Queue]int64           // minimum offset of a queue; 0 when it is not here
	Messages map[int64]message.Message // by log offset
	End      int64                     // of the log
	MinPhy   int64                     // the messages before it are gone
	Lag      int64                     // bytes of the log that are in no queue yet

	Delivered []Delivered // what was put into other topics than those that are kept
	Runs      []int       // how many messages each Put had
	Again     int         // messages that PutAgain has stored
	Reads     int         // entries and records that were read

	Code    func(m *message.Message) int64 // the tagsCode of a message's entry; nil: 0
	Fail    func(m *message.Message) error // what putting a message ends with; nil: all are stored
	ReadErr func(phyOffset int64) error    // what reading a message ends with; nil: what is there is read
	Flushed func(done func(error))         // in place of an answer at once that all is durable

	Damaged map[Queue]int64 // the offset of an entry that is not there

	keep []string
}

// New makes an empty store that keeps queues of the given topics, of all when none is given.
func New(keep ...string) *Store {
	return &Store{Queues: map[Queue][]store.Entry{}, First: map[Queue]int64{}, Messages: map[int64]message.Message{}, keep: keep}
}

// Append puts a message at the end of its queue, with a tagsCode of its own, and returns its queue offset.
func (s *Store) Append(m message.Message, tagsCode int64) int64 {
	s.Lock()
	defer s.Unlock()
	return s.appendLocked(&m, tagsCode)
}

// appendLocked gives m its place and stores a copy.
func (s *Store) appendLocked(m *message.Message, tagsCode int64) int64 {
	q := Queue{m.Topic, m.QueueId}
	m.PhyOffset, m.QueueOffset, m.StoreTimestamp = s.End, int64(len(s.Queues[q])), time.Now().UnixMilli()
	s.Messages[s.End] = *m
	s.Queues[q] = append(s.Queues[q], store.Entry{PhyOffset: s.End, Size: RecordSize, TagsCode: tagsCode})
	s.End += RecordSize
	return m.QueueOffset
}

// Last is the log offset of the message that was stored last.
func (s *Store) Last() int64 { return s.End - RecordSize }

// Bodies are the bodies of Delivered.
func (s *Store) Bodies() (all []string) {
	s.Lock()
	defer s.Unlock()
	for _, d := range s.Delivered {
		all = append(all, string(d.Body))
	}
	return all
}

// All are the messages of a topic's queue 0.
func (s *Store) All(topic string) (all []message.Message) {
	s.Lock()
	defer s.Unlock()
	for _, e := range s.Queues[Queue{Topic: topic}] {
		all = append(all, s.Messages[e.PhyOffset])
	}
	return all
}

// MinOffset is as of a store.Store.
func (s *Store) MinOffset(topic string, queueId int32) int64 {
	s.Lock()
	defer s.Unlock()
	return s.First[Queue{topic, queueId}]
}

// MaxOffset is as of a store.Store.
func (s *Store) MaxOffset(topic string, queueId int32) int64 {
	s.Lock()
	defer s.Unlock()
	return int64(len(s.Queues[Queue{topic, queueId}]))
}

// MaxPhyOffset is as of a store.Store.
func (s *Store) MaxPhyOffset() int64 {
	s.Lock()
	defer s.Unlock()
	return s.End
}

// ConfirmOffset is as of a store.Store.
func (s *Store) ConfirmOffset() int64 {
	s.Lock()
	defer s.Unlock()
	return s.End + s.Lag
}

// DispatchedOffset is as of a store.Store.
func (s *Store) DispatchedOffset() int64 { return s.MaxPhyOffset() }

// Entry is as of a store.Store.
func (s *Store) Entry(topic string, queueId int32, offset int64) (store.Entry, bool) {
	s.Lock()
	defer s.Unlock()
	q := Queue{topic, queueId}
	if offset < s.First[q] || offset >= int64(len(s.Queues[q])) {
		return store.Entry{}, false
	}
	if at, ok := s.Damaged[q]; ok && at == offset {
		return store.Entry{}, false
	}
	return s.Queues[q][offset], true
}

// Entries is as of a store.Store.
func (s *Store) Entries(topic string, queueId int32, offset int64, n int) ([]store.Entry, bool, error) {
	s.Lock()
	defer s.Unlock()
	q := Queue{topic, queueId}
	end := int64(len(s.Queues[q]))
	if offset < s.First[q] || offset >= end {
		return nil, true, nil
	}
	entries := slices.Clone(s.Queues[q][offset:min(offset+int64(n), end)])
	s.Reads += len(entries)
	return entries, true, nil
}

// Message is as of a store.Store.
func (s *Store) Message(phyOffset int64) (message.Message, error) {
	s.Lock()
	defer s.Unlock()
	s.Reads++
	if s.ReadErr != nil {
		if err := s.ReadErr(phyOffset); err != nil {
			return message.Message{}, err
		}
	}
	m, ok := s.Messages[phyOffset]
	if !ok || phyOffset < s.MinPhy {
		return message.Message{}, commitlog.ErrNotFound
	}
	return m, nil
}

// Record is as of a store.Store.
func (s *Store) Record(phyOffset int64) (message.Record, error) {
	m, err := s.Message(phyOffset)
	if err != nil {
		return nil, err
	}
	return message.AppendRecord(nil, &m), nil
}

// Put is as of a store.Store, but that a message which fails keeps none behind it from being stored.
func (s *Store) Put(run []*store.Put) {
	s.Lock()
	defer s.Unlock()
	s.Runs = append(s.Runs, len(run))
	for _, p := range run {
		s.putLocked(p)
	}
}

func (s *Store) putLocked(p *store.Put) {
	m := p.Message
	if p.Err = nil; s.Fail != nil {
		if p.Err = s.Fail(m); p.Err != nil {
			return
		}
	}
	p.PhyOffset = s.End
	if len(s.keep) > 0 && !slices.Contains(s.keep, m.Topic) {
		s.End += RecordSize
		s.Delivered = append(s.Delivered, Delivered{*m, time.Now()})
	} else {
		code := int64(0)
		if s.Code != nil {
			code = s.Code(m)
		}
		p.QueueOffset = s.appendLocked(m, code)
		p.StoreTimestamp = m.StoreTimestamp
	}
	p.End = s.End
}

// PutAgain is as of a store.Store.
func (s *Store) PutAgain(run []*store.Put) {
	s.Lock()
	s.Again += len(run)
	s.Unlock()
	s.Put(run)
}

// WaitFlushed is as of a store.Store, but that it answers at once unless Flushed is set.
func (s *Store) WaitFlushed(_ int64, _ time.Duration, done func(error)) {
	s.Lock()
	flushed := s.Flushed
	s.Unlock()
	if flushed != nil {
		flushed(done)
		return
	}
	done(nil)
}
