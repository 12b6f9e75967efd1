package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// Settings describe one run: one store, a number of kills.
type Settings struct {
	Flush       string // ASYNC_FLUSH or SYNC_FLUSH
	Small       bool   // small files, which roll often, and short intervals; else the defaults of both servers
	Kills       int
	Life        [2]time.Duration // how long the broker serves before it is killed: at least, at most
	Outlast     time.Duration    // one life in the middle lasts as long; 0: none does
	Start       time.Duration    // a kill during a start comes within this time
	Rate        int              // messages or batches a second, at most
	LargestBody int
	Seed        uint64

	// spoil, when set, changes the store of the dead broker after the last kill: the judge must notice.
	spoil func(storeDir string) error
}

// Name is the run's name in tests and reports.
func (s Settings) Name() string {
	if s.Small {
		return s.Flush + ", small files"
	}
	return s.Flush + ", default files"
}

// Conf is the broker.conf of a run.
func (s Settings) Conf() map[string]string {
	conf := map[string]string{"flushDiskType": s.Flush, "messageDelayLevel": delayLevels}
	sizes := map[string]int{"mappedFileSizeCommitLog": 1 << 30, "mappedFileSizeConsumeQueue": 6_000_000, "maxHashSlotNum": 5_000_000, "maxIndexNum": 20_000_000}
	if s.Small {
		sizes = map[string]int{"mappedFileSizeCommitLog": 1 << 20, "mappedFileSizeConsumeQueue": 200 * 20, "maxHashSlotNum": 1000, "maxIndexNum": 5000,
			"maxMessageSize": 200_000, "flushIntervalConsumeQueue": 100, "flushConsumeQueueThoroughInterval": 1000,
			"flushConsumerOffsetInterval": 500, "flushDelayOffsetInterval": 500}
	}
	for k, v := range sizes {
		conf[k] = strconv.Itoa(v)
	}
	return conf
}

// run is one run under way.
type run struct {
	s      Settings
	b      *target.Broker
	h      *History
	rng    *rand.Rand
	load   *load
	queues []Place // that are followed
	admin  link
}

// Run loads a broker that has just been started with s.Conf, kills it again and again, and reads everything at the end. Then
// the broker runs. The error is of the run itself: a broker that does not come back, or does not answer.
func Run(ctx context.Context, b *target.Broker, s Settings) (*History, error) {
	r := &run{s: s, b: b, h: NewHistory(), rng: newRand(s.Seed, 0), admin: link{addr: b.Addr}}
	defer r.admin.close()
	if err := r.makeTopics(ctx); err != nil {
		return nil, err
	}
	var producing, reading sync.WaitGroup
	readers, stopReading := context.WithCancel(ctx)
	defer stopReading()
	var mu sync.Mutex
	var errs []error
	start := func(group *sync.WaitGroup, f func() error) {
		group.Go(func() {
			if err := f(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	for i := range producers {
		p := &producer{load: r.load, rng: newRand(s.Seed, 100+uint64(i)), link: link{addr: b.Addr}, form: byte(i % 2), makes: i == 0}
		start(&producing, func() error { return p.run(ctx) })
	}
	links := map[string]*link{}
	for i, place := range r.queues {
		if links[place.Topic] == nil {
			links[place.Topic] = &link{addr: b.Addr}
			defer links[place.Topic].close()
		}
		f := &follower{h: r.h, place: place, link: links[place.Topic], rng: newRand(s.Seed, 200+uint64(i))}
		start(&reading, func() error { return f.run(readers) })
		start(&reading, func() error { return f.commit(readers, links[place.Topic]) })
	}
	err := r.kills(ctx)
	r.load.stopping.Store(true)
	producing.Wait()
	if err == nil {
		err = r.settle(ctx)
	}
	stopReading()
	reading.Wait()
	if err == nil {
		err = r.readAll(ctx)
	}
	return r.h, errors.Join(append(errs, err)...)
}

func newRand(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// makeTopics makes the topics that exist from the start.
func (r *run) makeTopics(ctx context.Context) error {
	r.load = &load{h: r.h, s: r.s}
	for _, t := range []struct {
		topic  string
		queues int
		late   bool
	}{{"CrashA", 4, false}, {"CrashB", 2, false}, {"CrashC", 1, false}, {"CrashLate", 2, true}} {
		n := strconv.Itoa(t.queues)
		answer, err := r.admin.call(ctx, wire.Request(17, "topic", t.topic, "defaultTopic", "TBW102", "readQueueNums", n, "writeQueueNums", n, "perm", "6",
			"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"))
		if err != nil {
			return err
		}
		if answer.Code != codeSuccess {
			return fmt.Errorf("topic %s: %d %s", t.topic, answer.Code, answer.Remark)
		}
		for q := range t.queues {
			p := Place{t.topic, int32(q)}
			r.queues = append(r.queues, p)
			if t.late {
				r.load.late = append(r.load.late, p)
			}
			r.load.queues = append(r.load.queues, p)
		}
	}
	return nil
}

// kills kills the broker, each time after some work.
func (r *run) kills(ctx context.Context) error {
	return killAgain(ctx, r.b, r.s, r.rng, hooks{killed: r.h.kill, started: func() error {
		for _, p := range r.queues {
			if err := stand(ctx, r.h, &r.admin, p); err != nil {
				return err
			}
		}
		return nil
	}})
}

// hooks are called by killAgain; those that are nil are not.
type hooks struct {
	before  func() // a kill of a broker that serves
	killed  func(inStart bool)
	started func() error
}

// killAgain kills a broker as often as s says, each time after some work; some starts are killed too. At the end the broker
// runs.
func killAgain(ctx context.Context, b *target.Broker, s Settings, rng *rand.Rand, h hooks) error {
	outlasted := false
	for left := s.Kills; left > 0; {
		life := s.Life[0] + time.Duration(rng.Int64N(int64(s.Life[1]-s.Life[0])))
		if left <= s.Kills/2 && !outlasted {
			life, outlasted = max(life, s.Outlast), true
		}
		if !pause(ctx, life) {
			return ctx.Err()
		}
		if h.before != nil {
			h.before()
		}
		if err := b.Kill(); err != nil {
			return err
		}
		h.killed(false)
		if left--; left > 0 && rng.IntN(5) == 0 {
			if err := b.StartAndKill(time.Duration(rng.Int64N(int64(s.Start)))); err != nil {
				return err
			}
			h.killed(true)
			left--
		}
		if left == 0 && s.spoil != nil {
			if err := s.spoil(b.StoreDir); err != nil {
				return err
			}
		}
		if err := b.Start(); err != nil {
			return err
		}
		if h.started == nil {
			continue
		}
		if err := h.started(); err != nil {
			return err
		}
	}
	return nil
}
