//go:build conformance

package ordering

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// The topics: one of four queues, over which eight keys are spread, and one of a single queue.
const (
	parted, partedQueues, partedKeys = "OrderParted", 4, 8
	global                           = "OrderGlobal"
)

// patience bounds the waiting for members: a killed one holds its locks for 60 s.
const patience = 4 * time.Minute

// run is one run of the proof.
type run struct {
	t      *testing.T
	target *target.Target
	path   string // of the history
	readTo int64  // how far consumed has read it
	read   int
	want   map[string]int64
	mu     sync.Mutex // guards want
}

// TestOrder: partial order (by key and queue) and global order (one queue) hold while members come, go and die, and while the
// broker is stopped and killed.
func TestOrder(t *testing.T) {
	t.Parallel()
	if os.Getenv("CONFORMANCE_SKIP_JAVA") == "1" {
		t.Skip("CONFORMANCE_SKIP_JAVA=1: THE ORDER OF STOCK CONSUMERS IS NOT PROVED")
	}
	total := 20_000
	if os.Getenv("CONFORMANCE_LONG") != "" {
		total = 1_000_000
	}
	r := &run{t: t, want: map[string]int64{}}
	r.target = target.Start(t, target.Options{Brokers: []target.BrokerOptions{{}}})
	r.path = filepath.Join(r.target.Dir(), "history")
	r.createTopic(parted, partedQueues)
	r.createTopic(global, 1)
	a, b := r.join("a"), r.join("b")
	broker := r.target.Brokers[0]
	steps := []func(){
		func() {},
		func() { r.join("c") },
		func() { r.leave(b) },
		func() { r.kill(a); r.join("d") },
	}
	// The official broker forgets its locks when it stops: whoever is there first afterwards gets all queues, while the
	// others still consume. So its own restarts are no case.
	if r.target.Kind == target.Rocketd {
		steps = append(steps, func() { r.restart(broker, broker.Stop) }, func() { r.restart(broker, broker.Kill) })
	} else {
		t.Log("official: without restarts of the broker")
	}
	chunk := (total + len(steps) - 1) / len(steps)
	for n, disturb := range steps {
		before := r.consumed()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			r.send(chunk)
		}()
		r.until(fmt.Sprintf("a quarter of part %d is consumed", n), func() bool { return r.consumed() >= before+chunk/4 || closed(sent) })
		disturb()
		<-sent
	}
	goal := 0
	for _, n := range r.want {
		goal += int(n)
	}
	var v *Verdict
	r.until("all is consumed", func() bool {
		if r.consumed() < goal {
			return false
		}
		v = r.check()
		return v.Missing == 0
	})
	for _, f := range v.Faults {
		t.Error(f)
	}
	if v.Owners == 0 {
		t.Error("no queue has changed its owner: nothing is proved")
	}
	t.Logf("%d messages, %d delivered again, %d changes of owners, %d faults", v.Messages, v.Repeated, v.Owners, v.Count)
}

func (r *run) check() *Verdict {
	f, err := os.Open(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	events, err := Read(f)
	if err != nil {
		r.t.Fatal(err)
	}
	return Check(events, r.want)
}

func (r *run) restart(b *target.Broker, end func() error) {
	r.mark("D broker ends")
	if err := end(); err != nil {
		r.t.Fatal(err)
	}
	if err := b.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.mark("D broker begins")
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// until waits for a condition.
func (r *run) until(what string, condition func() bool) {
	r.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !condition(); <-tick.C {
		if time.Now().After(end) {
			v := r.check()
			r.t.Fatalf("waited in vain until %s; %d messages, %q", what, v.Messages, v.Faults)
		}
	}
}

func (r *run) createTopic(topic string, queues int) {
	c, err := wire.Dial(r.target.Brokers[0].Addr, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	n := strconv.Itoa(queues)
	answer, err := c.Call(wire.Request(17, "topic", topic, "defaultTopic", "TBW102", "readQueueNums", n, "writeQueueNums", n, "perm", "6",
		"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"), 20*time.Second)
	if err != nil || answer.Code != 0 {
		r.t.Fatalf("topic %s: %v, %v", topic, answer, err)
	}
}

// send sends n messages, a quarter of them to the global topic: each topic's one after the other, again until it is
// acknowledged.
func (r *run) send(n int) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for topic, count := range map[string]int{parted: n - n/4, global: n / 4} {
		wg.Go(func() {
			var c *wire.Conn
			defer func() {
				if c != nil {
					c.Close()
				}
			}()
			for i := range count {
				key, queueId := "g", 0
				if topic == parted {
					key, queueId = fmt.Sprint("k", i%partedKeys), i%partedQueues
				}
				r.mu.Lock()
				seq := r.want[key]
				r.want[key]++
				r.mu.Unlock()
				if c = r.sendOne(c, topic, queueId, key, seq); c == nil {
					return
				}
			}
		})
	}
}

// sendOne returns the connection to go on with; nil: it has failed for good.
func (r *run) sendOne(c *wire.Conn, topic string, queueId int, key string, seq int64) *wire.Conn {
	last := ""
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		if c == nil {
			var err error
			if c, err = wire.Dial(r.target.Brokers[0].Addr, nil); err != nil {
				last = err.Error()
				continue
			}
		}
		answer, err := c.Call(wire.Request(310, "a", "P-ordering", "b", topic, "c", "TBW102", "d", "4", "e", strconv.Itoa(queueId), "f", "0",
			"g", strconv.FormatInt(time.Now().UnixMilli(), 10), "h", "0", "i", wire.Properties("KEYS", key, "UNIQ_KEY", fmt.Sprintf("%s%d", key, seq)),
			"j", "0", "k", "false", "m", "false").WithBody([]byte(strconv.FormatInt(seq, 10))), 20*time.Second)
		if err == nil && answer.Code == 0 {
			return c
		}
		last = fmt.Sprint(answer, err)
		if err != nil {
			c.Close()
			c = nil
		}
	}
	r.t.Errorf("message %d of key %s can't be sent: %s", seq, key, strings.TrimSpace(last))
	return nil
}
