package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// tick is the unit of the CPU times in /proc: USER_HZ, which is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// cpuTime is the CPU time that a process has used, user and system.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(text)
}

// parseStat finds utime and stime, fields 14 and 15. The second field, the program's name in brackets, may hold anything.
func parseStat(text []byte) (time.Duration, error) {
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc stat of %d fields", len(fields))
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// anonymous is a process' resident memory that no file backs, in bytes.
func anonymous(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parseStatus(string(text))
}

func parseStatus(text string) (int64, error) {
	for _, line := range strings.Split(text, "\n") {
		if v, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no RssAnon in /proc status")
}

// outcome is what one load did and what it cost the server.
type outcome struct {
	messages  int64
	took      time.Duration
	cpu       time.Duration // of the server
	memory    int64         // the most anonymous memory of the server that was seen, bytes
	latencies *hdrhistogram.Histogram
}

func (o outcome) cpuPerMessage() float64 {
	return float64(o.cpu) / float64(time.Microsecond) / float64(o.messages)
}

func (o outcome) perSecond() float64 { return float64(o.messages) / o.took.Seconds() }

// latency is a percentile in milliseconds.
func (o outcome) latency(percentile float64) float64 {
	return float64(o.latencies.ValueAtPercentile(percentile)) / float64(time.Millisecond)
}

// newHistogram keeps nanoseconds, from a microsecond to a minute.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(time.Microsecond), int64(time.Minute), 3)
}

// watch runs a load and adds what the server used meanwhile. The load says how many messages it moved.
func (in *instance) watch(load func() (outcome, error)) (outcome, error) {
	pid := in.pid()
	before, err := cpuTime(pid)
	if err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	most := make(chan int64, 1)
	go func() { most <- sampleMemory(ctx, pid) }()
	begin := time.Now()
	o, err := load()
	took := time.Since(begin)
	cancel()
	memory := <-most
	if err != nil {
		return o, err
	}
	if o.messages == 0 {
		return o, fmt.Errorf("no message in %s", took)
	}
	after, err := cpuTime(pid)
	o.took, o.cpu, o.memory = took, after-before, memory
	return o, err
}

func sampleMemory(ctx context.Context, pid int) (most int64) {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		if n, err := anonymous(pid); err == nil {
			most = max(most, n)
		}
		select {
		case <-ctx.Done():
			return most
		case <-every.C:
		}
	}
}
