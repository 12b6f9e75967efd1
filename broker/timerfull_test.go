package broker

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rocketd/broker/topics"
	"rocketd/remoting/remotingtest"
	"rocketd/store/vfs"
)

// waiting sends timer messages that are due an hour later and returns their bodies.
func (p *pathBroker) waiting(count int) (all []string) {
	p.tb.Helper()
	for i := range count {
		p.send("T", 0, fmt.Sprintf("TIMER_DELAY_SEC=%d", 3600+i%3), fmt.Sprint(i))
		all = append(all, fmt.Sprint(i))
	}
	p.at(topics.Timer, int64(count-1))
	slices.Sort(all)
	return all
}

// wantDelivered waits until queue 0 of T has what was to come, each once and nothing else.
func (p *pathBroker) wantDelivered(want []string) {
	p.tb.Helper()
	remotingtest.Eventually(p.tb, fmt.Sprintf("%d are delivered", len(want)), func() bool { return p.store.MaxOffset("T", 0) >= int64(len(want)) })
	var got []string
	for n := range p.store.MaxOffset("T", 0) {
		got = append(got, string(p.at("T", n).Body))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		p.tb.Errorf("delivered %v, want %v", got, want)
	}
}

// TestTimerOnAFullDisk: what is due while the disk is full comes when it has room again, each message once; also when the broker was
// stopped, killed or started on the full disk meanwhile, and with the timer switched off for a while.
func TestTimerOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, between := range []string{"nothing", "stop", "kill", "off"} {
		t.Run(between, func(t *testing.T) {
			t.Parallel()
			var clock ahead
			mem := vfs.NewMem(time.Now)
			fault := vfs.NewFault(mem, nil)
			b := startPathBrokerAt(t, fault, clock.now, nil)
			b.failing = true
			want := b.waiting(20)
			var refused atomic.Int64
			full := onLog(vfs.OpWrite, func() error { refused.Add(1); return syscall.ENOSPC })
			fault.SetInject(full)
			clock.forward(2 * time.Hour)
			remotingtest.Eventually(t, "a delivery fails", func() bool { return refused.Load() > 0 })
			if between != "nothing" {
				if between == "kill" {
					mem = mem.Kill()
				}
				b.close()
				fault = vfs.NewFault(mem, nil)
				refused.Store(0)
				fault.SetInject(full)
				b = startPathBrokerAt(t, fault, clock.now, func(c *Config) { c.TimerWheelEnable = between != "off" })
				b.failing = true
				if between == "off" {
					fault.SetInject(nil)
					b.send("T", 1, "", "another")
					b.stored("T", 1, 0, 1)
					if n := b.store.MaxOffset("T", 0); n != 0 {
						t.Errorf("%d came with the timer off", n)
					}
					b.close()
					fault = vfs.NewFault(mem, full)
					b = startPathBrokerAt(t, fault, clock.now, nil)
					b.failing = true
				}
				remotingtest.Eventually(t, "a delivery fails again", func() bool { return refused.Load() > 0 })
			}
			if n := b.store.MaxOffset("T", 0); n != 0 {
				t.Errorf("%d came on a full disk", n)
			}
			fault.SetInject(nil)
			b.wantDelivered(want)
		})
	}
}

// TestTimerStoreCutByHand: somebody has removed the queue of timer messages or the offsets, or has cut the log behind a message that waits:
// what is in the log comes, once; what is not is gone, and nothing else with it.
func TestTimerStoreCutByHand(t *testing.T) {
	t.Parallel()
	remove := func(name string) func(*testing.T, vfs.FS) {
		return func(t *testing.T, f vfs.FS) {
			if err := f.RemoveAll(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name string
		do   func(*testing.T, vfs.FS)
		lost int // of the last
	}{
		{"the queue", remove("/store/consumequeue/" + topics.Timer), 0},
		{"all queues", remove("/store/consumequeue"), 0},
		{"the checkpoint", remove("/store/checkpoint"), 0},
		{"the end of the queue", func(t *testing.T, f vfs.FS) {
			changeFiles(t, f, "/store/consumequeue/"+topics.Timer+"/0", func(b []byte) { clear(b[10*20 : 20*20]) })
		}, 0},
		{"the end of the log", func(t *testing.T, f vfs.FS) {
			changeFiles(t, f, "/store/commitlog", func(b []byte) {
				at := strings.LastIndex(string(b), "TIMER_")
				clear(b[at:])
			})
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var clock ahead
			b := startPathBrokerAt(t, vfs.NewMem(time.Now), clock.now, nil)
			want := b.waiting(20)
			b.close()
			c.do(t, b.fs)
			b = startPathBrokerAt(t, b.fs, clock.now, nil)
			if n := b.store.MaxOffset("T", 0); n != 0 {
				t.Errorf("%d came early", n)
			}
			clock.forward(2 * time.Hour)
			if c.lost > 0 {
				want = slices.DeleteFunc(want, func(s string) bool { return s == "19" })
			}
			b.wantDelivered(want)
		})
	}
}

// changeFiles changes all files of a folder.
func changeFiles(t *testing.T, f vfs.FS, dir string, change func([]byte)) {
	t.Helper()
	list, err := f.List(dir)
	if err != nil || len(list) == 0 {
		t.Fatalf("%s: %v", dir, err)
	}
	for _, e := range list {
		files, name := vfs.Files{FS: f}, path.Join(dir, e.Name())
		b, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		change(b)
		if err := files.WriteFile(name, b); err != nil {
			t.Fatal(err)
		}
	}
}
