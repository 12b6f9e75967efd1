//go:build conformance

package disk

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// manyQueues is the queues of each of many topics.
const manyQueues = 4

// TestManyTopics has a broker with very many topics: they are made, registered and written, and are there after a stop and
// after a kill. The official broker opens the directory with our hint of the queues' ends, and rocketd what it left. With
// CONFORMANCE_LONG=1 it is 100,000 topics, which no official broker can open (it maps a file for each queue); then the times and
// the bounds of memory and descriptors are those that are promised.
func TestManyTopics(t *testing.T) {
	n, other := 300, selected(t)
	if long() {
		n = 100_000
	}
	m := startMany(t, n, other, other)
	began := time.Now()
	m.send(n)
	t.Logf("a message to each of %d queues took %v", n*manyQueues, time.Since(began))
	m.check("at first", 1)
	if long() {
		m.bounded()
		m.written(other)
	}

	stopped := m.timed("stop", m.broker.Stop)
	if other == target.Rocketd {
		if _, err := os.Stat(filepath.Join(m.broker.StoreDir, "rocketd-queues")); err != nil {
			t.Errorf("no hint of the queues' ends: %v", err)
		}
	}
	started := m.timed("start after the stop", m.broker.Start)
	m.reconnect()
	m.check("after a stop", 1)
	m.send(50)
	m.s.hangUp()
	if err := m.broker.Kill(); err != nil {
		t.Fatal(err)
	}
	restarted := m.timed("start after kill -9", m.broker.Start)
	if long() {
		m.bounded()
	}
	m.reconnect()
	m.check("after kill -9", 2)
	m.routed()
	if long() {
		t.Logf("stop %v, start %v, start after kill -9 %v", stopped, started, restarted)
		if started > 5*time.Second || restarted > 5*time.Second {
			t.Error("a start took longer than 5 s")
		}
		return
	}
	for i, kind := range []target.Kind{target.Official, other} {
		m.s.hangUp()
		if err := m.broker.Stop(); err != nil {
			t.Fatal(err)
		}
		m.broker.RunAs(kind)
		if err := m.broker.Start(); err != nil {
			t.Fatal(err)
		}
		m.reconnect()
		m.check("opened by "+string(kind), int64(i+2))
		m.send(50)
	}
	m.check("at last", 4)
}

// The official name server and a broker of many topics: with 100,000 the registration is one frame that it takes, as it is
// compressed.
func TestManyTopicsAtOfficialNameServer(t *testing.T) {
	n := 300
	if long() {
		n = 100_000
	}
	m := startMany(t, n, target.Official, selected(t))
	m.routed()
	m.s.hangUp()
	if err := m.broker.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := m.broker.Start(); err != nil {
		t.Fatal(err)
	}
	m.reconnect()
	m.routed() // by one registration of all topics
}

// many is a broker with n topics.
type many struct {
	t      *testing.T
	n      int
	kind   target.Kind
	target *target.Target
	broker *target.Broker
	s      *server
}

func startMany(t *testing.T, n int, names, kind target.Kind) *many {
	t.Helper()
	conf := maps.Clone(small)
	conf["mappedFileSizeCommitLog"] = strconv.Itoa(16 << 20)
	if long() {
		conf["mappedFileSizeConsumeQueue"] = strconv.Itoa(300_000 * 20)
	}
	c := target.Start(t, target.Options{Kind: names, Brokers: []target.BrokerOptions{{Kind: kind, Conf: conf, JVM: quickStart}}})
	m := &many{t: t, n: n, kind: kind, target: c, broker: c.Brokers[0]}
	m.reconnect()
	began := time.Now()
	m.each(n, func(i int) []*wire.Frame { return []*wire.Frame{createTopic(manyTopic(i), manyQueues)} })
	t.Logf("making %d topics took %v", n, time.Since(began))
	t.Cleanup(func() { m.s.hangUp() })
	return m
}

func manyTopic(i int) string { return "Many" + strconv.Itoa(i) }

// send sends a message to each queue of the first topics.
func (m *many) send(topics int) {
	m.t.Helper()
	m.each(topics, func(i int) []*wire.Frame {
		frames := make([]*wire.Frame, manyQueues)
		for q := range frames {
			frames[q] = wire.Request(310, "a", "disk", "b", manyTopic(i), "c", "TBW102", "d", "4", "e", strconv.Itoa(q), "f", "0",
				"g", strconv.FormatInt(millis(), 10), "h", "0", "i", "", "j", "0", "k", "false", "m", "false").WithBody([]byte(manyTopic(i)))
		}
		return frames
	})
}

// each makes requests for the topics 0 to topics-1, many at once; each must succeed.
func (m *many) each(topics int, frames func(i int) []*wire.Frame) {
	m.t.Helper()
	const atOnce = 2500 // a write of topics.json serves all who wait for it
	for i := 0; i < topics; i += atOnce {
		var run []*wire.Frame
		for k := i; k < min(topics, i+atOnce); k++ {
			run = append(run, frames(k)...)
		}
		waiting, err := m.s.Conn.SendAll(run)
		if err != nil {
			m.t.Fatal(err)
		}
		for _, p := range waiting {
			a, err := p.Wait(patience)
			if err != nil || a.Code != 0 {
				m.t.Fatalf("topic %d and on: %+v %v", i, a, err)
			}
		}
	}
}

// check looks at queues of all parts: the first fifty topics have so many messages in each, the others one.
func (m *many) check(when string, most int64) {
	m.t.Helper()
	for i := 0; i < m.n; i += max(1, m.n/500) {
		p, want := place{manyTopic(i), int32(i % manyQueues)}, int64(1)
		if i < 50 {
			want = most
		}
		until(m.t, fmt.Sprintf("%s: %s ends at %d", when, p, want), func() bool { return m.s.maxOffset(p) >= want }) // dispatch may be under way
		ms := m.s.read(p, 0)
		if int64(len(ms)) != want || string(ms[0].Body) != p.topic {
			m.t.Fatalf("%s: %s has %d messages, want %d", when, p, len(ms), want)
		}
	}
}

// routed waits until the name server knows all topics.
func (m *many) routed() {
	m.t.Helper()
	addr := m.target.NameServers[0].Addr
	began := time.Now()
	until(m.t, "the name server knows all topics", func() bool {
		for _, i := range []int{0, m.n / 2, m.n - 1} {
			f, err := wire.CallOnce(addr, wire.Request(105, "topic", manyTopic(i)), patience)
			if err != nil || f.Code != 0 || !strings.Contains(string(f.Body), m.broker.Addr) {
				return false
			}
		}
		f, err := wire.CallOnce(addr, wire.Request(206), patience)
		return err == nil && f.Code == 0 && strings.Count(string(f.Body), `"Many`) == m.n
	})
	m.t.Logf("the name server knew them after another %v", time.Since(began))
}

// written waits until the files of all queues are made, which takes as long as it takes: a stop that comes sooner waits for
// them.
func (m *many) written(kind target.Kind) {
	m.t.Helper()
	sent := time.Now()
	for deadline := sent.Add(5 * time.Minute); kind == target.Rocketd; <-time.After(time.Second) {
		info, err := os.Stat(filepath.Join(m.broker.StoreDir, "rocketd-queues"))
		if err == nil && info.ModTime().After(sent) {
			break
		}
		if time.Now().After(deadline) {
			m.t.Fatal("no hint of the queues' ends was written in five minutes")
		}
	}
	m.t.Logf("the files of all queues were made after another %v", time.Since(sent))
}

// bounded looks at memory and descriptors.
func (m *many) bounded() {
	m.t.Helper()
	if m.kind == target.Official {
		return
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.broker.Pid()))
	if err != nil {
		m.t.Skip("no /proc")
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", m.broker.Pid()))
	if err != nil {
		m.t.Fatal(err)
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", m.broker.Pid()))
	if err != nil {
		m.t.Fatal(err)
	}
	var anonymous int
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			anonymous, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(v), " kB"))
		}
	}
	mappings := strings.Count(string(maps), "\n")
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.broker.Pid()))
	if err != nil {
		m.t.Fatal(err)
	}
	times := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[11:13] // user and system, in 10 ms
	m.t.Logf("%d MiB of anonymous memory, %d descriptors, %d mappings, 10 ms of CPU (user, system): %s", anonymous>>10, len(open), mappings, times)
	if anonymous>>10 > 2048 || len(open) > 2000 || mappings > 2000 {
		m.t.Error("more than 2 GiB, or 2000 descriptors or mappings")
	}
}

func (m *many) timed(what string, f func() error) time.Duration {
	m.t.Helper()
	began := time.Now()
	if err := f(); err != nil {
		m.t.Fatalf("%s: %v", what, err)
	}
	took := time.Since(began)
	m.t.Logf("%s took %v", what, took)
	return took
}

func (m *many) reconnect() {
	m.t.Helper()
	m.s = connect(m.t, m.broker)
}
