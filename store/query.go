package store

import (
	"slices"

	"rocketd/protocol"
	"rocketd/protocol/message"
)

// queryRounds is how often a query looks again, further back, when nothing it found could be read
// (DefaultMessageStore#queryMessage of 4.9.8).
const queryRounds = 3

// queryBytes is the most bytes that the records of a query may have together: what fits into a frame with its header.
// 4.9.8 gives all that it finds, in a frame that no client takes.
const queryBytes = protocol.MaxFrame - 64<<10

// QueryResult is the answer of a Query.
type QueryResult struct {
	Records                  []message.Record
	Body                     []byte // the records, one behind the other; Records point into it
	IndexLastUpdateTimestamp int64
	IndexLastUpdatePhyOffset int64
}

// Query finds records by topic and key between two store times (ms), at most max (spec: section 4). Records of other
// keys with the same hash are among them, as in 4.9.8: the client looks at the keys. Those of other topics are not: the hash
// is that of topic and key together, so a key can be made up for which 4.9.8 shows what the asker may not read. Of records that do not fit into a
// frame together the oldest are given: of those with one unique key clients take the oldest. One is always given.
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
		end = s.readFound(&result, topic, found.PhyOffsets, end)
		if len(result.Records) > 0 || end < begin {
			break
		}
	}
	return result
}

// readFound reads a topic's records into the result. It returns the store time of the first, or end when that has expired.
func (s *Store) readFound(result *QueryResult, topic string, phyOffsets []int64, end int64) int64 {
	sizes, total := make([]int32, 0, len(phyOffsets)), 0
	for _, phyOffset := range phyOffsets {
		size, err := s.recordSize(phyOffset)
		if err != nil {
			size = 0 // expired
		}
		if total > 0 && total+int(size) > queryBytes {
			break
		}
		sizes, total = append(sizes, size), total+int(size)
	}
	body := make([]byte, 0, total)
	for i, size := range sizes {
		r, err := s.rawRecord(body, phyOffsets[i], size)
		if err != nil {
			continue
		}
		if i == 0 {
			end = r.StoreTimestamp()
		}
		if r.Topic() != topic {
			continue
		}
		body = append(body, r...) // which is there already, unless the read has moved it
		result.Records = append(result.Records, message.Record(body[len(body)-len(r):len(body):len(body)]))
	}
	result.Body = body
	return end
}
