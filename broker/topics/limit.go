package topics

import (
	"errors"
	"strings"
)

// ErrFull says that there are as many topics as there may be.
var ErrFull = errors.New("there are as many topics as maxTopics allows")

// maxNames is how many bytes the names of topics may have together that are created without being asked for: a registration at
// a name server has to fit a frame of 16 MiB, or clients find none of them any more.
const maxNames = 12 << 20

// full tells whether no further topic of this name may be created. The server's own always may.
func (t *Table) full(topic string) bool {
	if t.o.Limit == nil || t.system[topic] || strings.HasPrefix(topic, SystemPrefix) {
		return false
	}
	limit := t.o.Limit()
	return limit > 0 && t.count.Load() >= int64(limit)
}

// refuse tells, and counts, whether a topic may not be created because somebody sends to it or consumes.
func (t *Table) refuse(topic string) bool {
	if !t.full(topic) && (t.names.Load()+int64(len(topic)) <= maxNames || strings.HasPrefix(topic, SystemPrefix)) {
		return false
	}
	t.refused.Add(1)
	return true
}

// Refused is how many topics were not created since the start because there were too many.
func (t *Table) Refused() int64 { return t.refused.Load() }
