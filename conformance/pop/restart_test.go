//go:build conformance

package pop

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// Whether the broker is stopped or killed: what was not acknowledged comes again, at the time that was asked for last.
// What was acknowledged does not; to the official broker that holds only after a stop, for a kill takes its consumer
// offsets back by up to five seconds. How a group takes the topic's messages (request mode) stays.
func TestRestart(t *testing.T) {
	b := server.Brokers[0]
	for _, c := range []struct {
		name string
		down func() error
	}{{"stop", b.Stop}, {"kill", b.Kill}} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, "Down"+c.name, 1)
			s.send(0, "", "a", "b", "c", "d", "e")
			mode := fmt.Sprintf(`{"consumerGroup":%q,"mode":"POP","popShareQueueNum":3,"topic":%q}`, s.group, s.topic)
			s.want(wire.Request(401).WithBody([]byte(mode)), 0)
			_, got := s.take(s.pop(0, 32, 8*time.Second))
			if bodies(got) != "a,b,c,d,e" {
				t.Fatalf("got %s", bodies(got))
			}
			s.want(s.about(200051, got[1]), 0)
			s.want(s.about(200051, got[3]), 0)
			s.want(s.about(200053, got[4], "invisibleTime", "3000"), 0)
			if err := c.down(); err != nil {
				t.Fatal(err)
			}
			if err := b.Start(); err != nil {
				t.Fatal(err)
			}
			s.connect()
			if modes := string(s.want(wire.Request(402), 0).Body); !strings.Contains(modes, mode) {
				t.Errorf("the request modes are %s, without %s", modes, mode)
			}
			var again []string
			for deadline := time.Now().Add(comeback); !contains(again, "a", "c", "e"); {
				if time.Now().After(deadline) {
					t.Fatalf("come again: %v", again)
				}
				_, more := s.take(s.pop(0, 32, time.Minute, "pollTime", "3000"))
				for _, m := range more {
					again = append(again, string(m.Body))
					s.want(s.about(200051, m), 0)
				}
			}
			if slices.Sort(again); server.Kind == target.Rocketd || c.name == "stop" {
				if !slices.Equal(again, []string{"a", "c", "e"}) {
					t.Errorf("come again: %v", again)
				}
			}
			s.stands("0", "5")
		})
	}
}

func contains(list []string, all ...string) bool {
	for _, s := range all {
		if !slices.Contains(list, s) {
			return false
		}
	}
	return true
}

// The batch of an orderly consumer survives a stop, with what was acknowledged of it.
func TestRestartOrderly(t *testing.T) {
	b := server.Brokers[0]
	s := open(t, "DownOrder", 1)
	s.send(0, "", "a", "b")
	order := func() *wire.Frame { return s.pop(0, 32, 5*time.Minute, "order", "true") }
	_, got := s.take(order())
	if bodies(got) != "a,b" {
		t.Fatalf("got %s", bodies(got))
	}
	s.want(s.about(200051, got[0]), 0)
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(b.StoreDir, "config", "consumerOrderInfo.json"))
	if err != nil {
		t.Fatal(err)
	}
	h := strings.Fields(got[0].handle)
	want := regexp.MustCompile(`"` + s.topic + "@" + s.group + `":\{0:\{"cm":1,"i":300000,"l":\d+,"o":\[0,1\],"popTime":` + h[1] + `\}\}`)
	if plain := strings.Join(strings.Fields(string(text)), ""); !want.MatchString(plain) {
		t.Errorf("consumerOrderInfo.json: %s, want %s", plain, want)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	s.connect()
	s.want(order(), 210)
	s.want(s.about(200051, got[1]), 0)
	s.stands("0", "2")
}
