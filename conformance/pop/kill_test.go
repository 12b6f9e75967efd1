//go:build conformance

package pop

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// history is what producers and consumers know of each message.
type history struct {
	sync.Mutex
	sent     map[string]bool      // the send was answered
	acked    map[string]time.Time // when an acknowledgement was answered first
	asked    map[string]bool      // an acknowledgement was sent that a kill may have left without answer, and taken or not
	consumed map[string]int       // pops that brought it
	late     []string             // brought by a pop that was sent after the acknowledgement was answered
}

// lasting is a connection that is made anew as often as the broker needs.
type lasting struct {
	addr string
	conn *wire.Conn
}

func (l *lasting) call(f *wire.Frame, patience time.Duration) (*wire.Frame, error) {
	if l.conn == nil {
		c, err := wire.Dial(l.addr, nil)
		if err != nil {
			return nil, err
		}
		l.conn = c
	}
	a, err := l.conn.Call(f, patience)
	if err != nil {
		l.conn.Close()
		l.conn = nil
	}
	return a, err
}

func (l *lasting) close() {
	if l.conn != nil {
		l.conn.Close()
	}
}

// produce sends until ctx ends; a send that failed is not repeated: its message may be there or not.
func (h *history) produce(ctx context.Context, s *session, name string) {
	l := &lasting{addr: s.broker.Addr}
	defer l.close()
	every := time.NewTicker(time.Millisecond)
	defer every.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		body := fmt.Sprintf("%s%d", name, i)
		a, err := l.call(wire.Request(310, "a", "PG", "b", s.topic, "c", "TBW102", "d", "4", "e", strconv.Itoa(i%2), "f", "0", "g", strconv.FormatInt(time.Now().UnixMilli(), 10),
			"h", "0", "i", wire.Properties("WAIT", "true"), "j", "0", "k", "false", "m", "false").WithBody([]byte(body)), patience)
		if err == nil && a.Code == 0 {
			h.Lock()
			h.sent[body] = true
			h.Unlock()
		}
		<-every.C
	}
}

// consume pops and acknowledges until ctx ends, all but every ninth message the first time.
func (h *history) consume(ctx context.Context, s *session) {
	l := &lasting{addr: s.broker.Addr}
	defer l.close()
	for ctx.Err() == nil {
		if err := h.consumeOnce(l, s); err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond): // the broker is down
			}
		}
	}
}

func (h *history) consumeOnce(l *lasting, s *session) error {
	asked := time.Now()
	a, err := l.call(s.pop(-1, 8, 3*time.Second, "pollTime", "500"), patience)
	if err != nil || a.Code == 210 {
		return err
	}
	if a.Code != 0 {
		return errors.New(a.Remark)
	}
	for _, m := range s.messages(a) {
		body := string(m.Body)
		h.Lock()
		if at, ok := h.acked[body]; ok && asked.After(at) {
			h.late = append(h.late, body)
		}
		h.consumed[body]++
		skip := h.consumed[body] == 1 && strings.HasSuffix(body, "9")
		h.Unlock()
		if skip {
			continue
		}
		if a, err = l.call(s.about(200051, m), patience); err != nil {
			h.Lock()
			h.asked[body] = true
			h.Unlock()
			return err
		}
		h.Lock()
		if _, ok := h.acked[body]; !ok && a.Code == 0 {
			h.acked[body] = time.Now()
		}
		h.Unlock()
	}
	return nil
}

// missing is how many messages have been sent and nobody has tried to acknowledge.
func (h *history) missing() (n int, example string) {
	h.Lock()
	defer h.Unlock()
	for body := range h.sent {
		if _, ok := h.acked[body]; !ok && !h.asked[body] {
			n++
			example = body
		}
	}
	return n, example
}

// A broker that is killed under load loses nothing, and brings nothing again whose acknowledgement was answered. (The
// official one may: a kill takes its consumer offsets back.)
func TestKillUnderLoad(t *testing.T) {
	s := open(t, "Load", 2)
	h := &history{sent: map[string]bool{}, acked: map[string]time.Time{}, asked: map[string]bool{}, consumed: map[string]int{}}
	producing, stop := context.WithCancel(context.Background())
	consuming, end := context.WithCancel(context.Background())
	var producers, consumers sync.WaitGroup
	defer func() {
		stop()
		end()
		producers.Wait()
		consumers.Wait()
	}()
	for _, name := range []string{"x", "y"} {
		producers.Go(func() { h.produce(producing, s, name) })
	}
	for range 3 {
		consumers.Go(func() { h.consume(consuming, s) })
	}
	for range 2 {
		before := 0
		h.Lock()
		before = len(h.acked)
		h.Unlock()
		s.until("some are consumed", comeback, &deliveries{}, func() bool {
			h.Lock()
			defer h.Unlock()
			return len(h.acked) > before+300
		})
		if err := s.broker.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.broker.Start(); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	producers.Wait()
	defer func() {
		if n, example := h.missing(); t.Failed() && n > 0 {
			t.Logf("%d of %d messages are missing, such as %s", n, len(h.sent), example)
		}
	}()
	s.until("all is acknowledged", comeback, &deliveries{}, func() bool {
		n, _ := h.missing()
		return n == 0
	})
	end()
	consumers.Wait()
	if n, example := h.missing(); n > 0 {
		t.Errorf("%d messages are lost, such as %s", n, example)
	}
	if len(h.late) > 0 && server.Kind == target.Rocketd {
		t.Errorf("%d of %d messages came again after their acknowledgement was answered, such as %s", len(h.late), len(h.acked), h.late[0])
	}
	t.Logf("%d sent, %d consumed, %d came after their acknowledgement", len(h.sent), len(h.acked), len(h.late))
}
