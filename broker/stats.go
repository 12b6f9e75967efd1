package broker

import (
	"sync"
	"sync/atomic"
	"time"

	"rocketd/compat"
)

// totals counts what GET_BROKER_RUNTIME_INFO tells of the whole store. The counters are written by the message path,
// with one atomic addition each; the samples by housekeeping, once a second. What is counted by topic and group is in
// package stats.
type totals struct {
	putTimes    atomic.Int64 // messages stored
	putBytes    atomic.Int64 // their bytes in the log
	putFailed   atomic.Int64 // requests
	getFound    atomic.Int64 // pulls that found messages
	getMiss     atomic.Int64 // pulls that did not
	transferred atomic.Int64 // messages handed out
	putTimeMax  atomic.Int64 // ms, the longest put
	getTimeMax  atomic.Int64 // ms, the longest get
	latency     atomic.Pointer[putLatency]

	mu struct {
		sync.Mutex
		ring [sampleSlots]sample // the last ten minutes
		n    int                 // samples taken
		day  int                 // day of the year of the morning below
		// Counts at last midnight and at the one before, as BrokerStats of 4.9.8.
		putMorning, putYesterday int64
		getMorning, getYesterday int64

		lastLatency *putLatency // of the last whole minute; nil before there is one
		latencyFrom time.Time   // when the counting of the minute under way began
	}
}

const sampleSlots = 601

// sample is what the counters were at one moment.
type sample struct {
	at                            time.Time
	put, found, miss, transferred int64
	timerIn, timerOut             int64 // of timer messages: entered, delivered
}

// put counts requests that stored messages, how many bytes these take and how long storing them took.
func (s *totals) put(requests, messages int, bytes int64, took time.Duration) {
	s.putTimes.Add(int64(messages))
	s.putBytes.Add(bytes)
	ms := took.Milliseconds()
	raise(&s.putTimeMax, ms)
	s.latency.Load().add(ms, int64(requests))
}

// get counts a pull, how many messages it found and how long that took.
func (s *totals) get(messages int, took time.Duration) {
	raise(&s.getTimeMax, took.Milliseconds())
	if messages == 0 {
		s.getMiss.Add(1)
		return
	}
	s.getFound.Add(1)
	s.transferred.Add(int64(messages))
}

func raise(max *atomic.Int64, v int64) {
	for old := max.Load(); v > old; old = max.Load() {
		if max.CompareAndSwap(old, v) {
			return
		}
	}
}

// tick takes a sample, with the counts of timer messages, and, after midnight, the morning's counts; once a minute those of the put latency begin anew.
func (s *totals) tick(now time.Time, timerIn, timerOut int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.ring[s.mu.n%sampleSlots] = sample{now, s.putTimes.Load(), s.getFound.Load(), s.getMiss.Load(), s.transferred.Load(), timerIn, timerOut}
	s.mu.n++
	if d := now.YearDay(); d != s.mu.day {
		if s.mu.day != 0 {
			s.mu.putYesterday, s.mu.putMorning = s.mu.putMorning, s.putTimes.Load()
			s.mu.getYesterday, s.mu.getMorning = s.mu.getMorning, s.transferred.Load()
		}
		s.mu.day = d
	}
	if now.Sub(s.mu.latencyFrom) >= time.Minute {
		if !s.mu.latencyFrom.IsZero() {
			s.mu.lastLatency = s.latency.Swap(newPutLatency())
		}
		s.mu.latencyFrom = now
	}
}

// lastLatency is how long the puts of the last whole minute took, nil before there is one.
func (s *totals) lastLatency() *putLatency {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.lastLatency
}

// mornings are the counts since start at the midnight before last and at the last one.
func (s *totals) mornings() (putYesterday, putToday, getYesterday, getToday int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.putYesterday, s.mu.putMorning, s.mu.getYesterday, s.mu.getMorning
}

// tps is a counter's rate over the last 10 s, 1 min and 10 min as text, parted by spaces. A period for which
// there are not samples enough yet is left empty, as StoreStatsService of 4.9.8 leaves it.
func (s *totals) tps(of func(sample) int64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text []byte
	for i, seconds := range tpsPeriods {
		if i > 0 {
			text = append(text, ' ')
		}
		if s.mu.n > seconds {
			text = compat.AppendDouble(text, s.rateLocked(of, seconds))
		}
	}
	return string(text)
}

// totalTps is the rate of all pulls. compat: unlike the others it has 0.0 for a period without samples enough.
func (s *totals) totalTps() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text []byte
	for i, seconds := range tpsPeriods {
		if i > 0 {
			text = append(text, ' ')
		}
		rate := 0.0
		if s.mu.n > seconds {
			rate = s.rateLocked(func(x sample) int64 { return x.found + x.miss }, seconds)
		}
		text = compat.AppendDouble(text, rate)
	}
	return string(text)
}

// recentTps is a rate over the last 10 s, 0.0 before there are samples enough.
func (s *totals) recentTps(of func(sample) int64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	rate := 0.0
	if s.mu.n > tpsPeriods[0] {
		rate = s.rateLocked(of, tpsPeriods[0])
	}
	return string(compat.AppendDouble(nil, rate))
}

// tpsPeriods are the periods of the rates, in seconds.
var tpsPeriods = [...]int{10, 60, 600}

// rateLocked is the mean rate over the last seconds samples; there are more than that.
func (s *totals) rateLocked(of func(sample) int64, seconds int) float64 {
	last, first := s.mu.ring[(s.mu.n-1)%sampleSlots], s.mu.ring[(s.mu.n-1-seconds)%sampleSlots]
	took := last.at.Sub(first.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(of(last)-of(first)) / took
}
