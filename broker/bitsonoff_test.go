package broker

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/remoting/remotingtest"
	"rocketd/store/vfs"
)

// TestBitsSwitched: with the bits of the dispatcher and consumequeue_ext on, off and on again over restarts and kills, the files of units cut,
// garbled or gone in between, and the expression changed each time, a pull by an expression gets just what that takes.
func TestBitsSwitched(t *testing.T) {
	t.Parallel()
	const dir = "/store/consumequeue_ext/T/0"
	garble := func(change func(r *rand.Rand, b []byte) []byte) func(*testing.T, *rand.Rand, vfs.FS) {
		return func(t *testing.T, r *rand.Rand, f vfs.FS) {
			list, err := f.List(dir)
			if err != nil || len(list) == 0 {
				t.Fatalf("no files of units: %v", err)
			}
			name := path.Join(dir, list[r.IntN(len(list))].Name())
			files := vfs.Files{FS: f}
			b, err := files.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := files.WriteFile(name, change(r, b)); err != nil {
				t.Fatal(err)
			}
		}
	}
	damages := []func(*testing.T, *rand.Rand, vfs.FS){
		func(*testing.T, *rand.Rand, vfs.FS) {},
		garble(func(_ *rand.Rand, b []byte) []byte { clear(b); return b }),
		garble(func(r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b))] }),
		garble(func(r *rand.Rand, b []byte) []byte { // sizes that can't be
			for at := r.IntN(40); at < len(b); at += 1 + r.IntN(40) {
				b[at] = 0xFF
			}
			for i := range b {
				b[i] |= 0x80
			}
			return b
		}),
		func(t *testing.T, _ *rand.Rand, f vfs.FS) {
			if err := f.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		},
	}
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			fs, count := vfs.NewMem(nil), 0
			for phase := range 5 {
				b := startPathBrokerOn(t, fs, func(c *Config) {
					c.EnablePropertyFilter = true
					c.EnableConsumeQueueExt, c.EnableCalcFilterBitMap = phase == 0 || r.IntN(3) > 0, phase == 0 || r.IntN(3) > 0
					c.MappedFileSizeConsumeQueueExt = 4096
				})
				least := r.IntN(6)
				b.heartbeat(body.Clustering, body.SubscriptionData{Topic: "T", SubString: fmt.Sprintf("a >= %d", least), ExpressionType: "SQL92", SubVersion: int64(phase + 1)})
				born := b.filters.Find("T", "CG").BornTime
				remotingtest.Eventually(t, "the clock moves on", func() bool { return b.clock().UnixMilli() > born })
				for range 40 {
					b.send("T", 0, fmt.Sprintf("a=%d", count%7), fmt.Sprint(count))
					count++
				}
				b.stored("T", 0, 0, int64(count))
				var want, got []string
				for n := range count {
					if n%7 >= least {
						want = append(want, fmt.Sprint(n))
					}
				}
				for at := int64(0); at < int64(count); {
					h := pullHeader("T", 0, at)
					h.SysFlag = 0
					a := b.ask(protocol.PullMessage, h, nil)
					if a.Code == 0 {
						for _, m := range b.messages(a) {
							got = append(got, string(m.Body))
						}
					}
					next := offsetIn(t, field(t, a, "nextBeginOffset"))
					if next <= at {
						t.Fatalf("code %d, on from %d", a.Code, next)
					}
					at = next
				}
				if !slices.Equal(got, want) {
					t.Fatalf("phase %d: got %s\nwant %s", phase, strings.Join(got, " "), strings.Join(want, " "))
				}
				if r.IntN(2) == 0 {
					fs = fs.Kill()
				}
				b.close()
				if list, err := fs.List(dir); err == nil && len(list) > 0 {
					damages[r.IntN(len(damages))](t, r, fs)
				}
			}
		})
	}
}

// TestExpressionChangesUnderHeldPull: a pull that is held when the expression of its group changes gets what the new one takes, and
// nothing that only the old one took.
func TestExpressionChangesUnderHeldPull(t *testing.T) {
	t.Parallel()
	for _, bits := range []bool{false, true} {
		t.Run(fmt.Sprint(bits), func(t *testing.T) {
			t.Parallel()
			b := startPathBroker(t, func(c *Config) {
				c.EnablePropertyFilter, c.EnableCalcFilterBitMap, c.EnableConsumeQueueExt = true, bits, bits
			})
			subscribe := func(expression string, version int64) {
				b.heartbeat(body.Clustering, body.SubscriptionData{Topic: "T", SubString: expression, ExpressionType: "SQL92", SubVersion: version})
			}
			subscribe("a > 5", 1)
			b.send("T", 0, "a=0", "refused by both") // so that the queue is there
			b.stored("T", 0, 0, 1)
			puller := b.dial()
			h := pullHeader("T", 0, 1)
			h.SysFlag, h.SubVersion, h.SuspendTimeoutMillis = 2, 1, 1000
			puller.Send(b.request(protocol.PullMessage, h, nil))
			remotingtest.Eventually(t, "it is held", func() bool { return b.path.held.Held() == 1 })
			subscribe("a = 3", 2)
			b.send("T", 0, "a=9", "old")
			b.send("T", 0, "a=3", "new")
			b.send("T", 0, "a=8", "old too")
			b.stored("T", 0, 0, 4)
			var got []string
			for a := puller.Receive(); ; a = puller.Receive() {
				if a.Code == 0 {
					for _, m := range b.messages(a) {
						got = append(got, string(m.Body))
					}
				}
				h.QueueOffset, h.SubVersion = offsetIn(t, field(t, a, "nextBeginOffset")), 2
				if h.QueueOffset == 4 {
					break
				}
				puller.Send(b.request(protocol.PullMessage, h, nil))
			}
			if fmt.Sprint(got) != "[new]" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func offsetIn(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
