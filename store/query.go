package store

import (
	"slices"

	"rocketd/protocol/message"
)

// queryRounds is how often a query looks again, further back, when nothing it found could be read
// (DefaultMessageStore#queryMessage of 4.9.8).
const queryRounds = 3

// QueryResult is the answer of a Query.
type QueryResult struct {
	Records                  []message.Record
	IndexLastUpdateTimestamp int64
	IndexLastUpdatePhyOffset int64
}

// Query finds records by topic and key between two store times (ms), at most max (spec: section 4). Records of other
// keys with the same hash are among them, as in 4.9.8: the client looks at the keys.
func (s *Store) Query(topic, key string, max int, begin, end int64) QueryResult {
	var result QueryResult
	max = min(max, s.Config().MaxMsgsNumBatch)
	for range queryRounds {
		found, err := s.index.Query(topic, key, max, begin, end)
		if err != nil {
			s.o.Log.Error("query", "topic", topic, "error", err)
		}
		if len(found.PhyOffsets) == 0 {
			break
		}
		slices.Sort(found.PhyOffsets)
		found.PhyOffsets = slices.Compact(found.PhyOffsets) // a record whose keys were indexed again may be there twice
		result.IndexLastUpdateTimestamp = found.LastUpdateTimestamp
		result.IndexLastUpdatePhyOffset = found.LastUpdatePhyOffset
		for i, phyOffset := range found.PhyOffsets {
			r, err := s.Record(phyOffset)
			if err != nil {
				continue // expired
			}
			if i == 0 {
				end = r.StoreTimestamp()
			}
			result.Records = append(result.Records, r)
		}
		if len(result.Records) > 0 || end < begin {
			break
		}
	}
	return result
}
