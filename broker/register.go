package broker

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rocketd/broker/topics"
)

// registrar keeps the broker registered at every name server. Each name server has a goroutine of its own, so
// one that is down holds up no other: it is tried again every second until it has been reached.
//
// A full registration (all topics) is sent at start, 10 s later and then every registerNameServerPeriod. A topic
// that is created or changed is sent at once, alone: name servers take the topics of a registration whose data
// version is new to them and keep the others.
type registrar struct {
	b             *Broker
	compressAbove int // the constant, but for tests
	most          int // maxRegistration, but for tests

	mu struct {
		sync.Mutex
		servers []*nameServer // in the order of namesrvAddr
		started bool
		closed  bool
	}
	wg     sync.WaitGroup
	ctx    context.Context // ends the requests under way
	cancel context.CancelFunc
}

// retryPeriod is the time between two tries at a name server that could not be reached.
const retryPeriod = time.Second

// secondRegistration is when the second registration follows the first, as BrokerController#start.
const secondRegistration = 10 * time.Second

// unregisterPatience is how long a stopping broker waits for registrations under way.
const unregisterPatience = time.Second

// nameServer is one name server and what it has still to be told.
type nameServer struct {
	addr string
	wake chan struct{} // capacity 1: there is something in mu
	stop chan struct{}

	mu struct {
		sync.Mutex
		topics  map[string]*topics.Config // changed and not yet sent
		full    bool                      // a full registration is due
		waiters []func()                  // called when all of the above has been tried
		reached bool                      // the latest try succeeded
		order   map[string]string         // the latest order table; nil = none

		unanswered time.Time // when the last question for a route had no answer; zero: it had one
	}
}

func newRegistrar(b *Broker) *registrar {
	r := &registrar{b: b, compressAbove: compressAbove, most: maxRegistration}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// splitNamesrvAddr takes `a:9876;b:9876` apart; `,` is accepted too.
func splitNamesrvAddr(s string) []string {
	var addrs []string
	for _, a := range strings.FieldsFunc(s, func(r rune) bool { return r == ';' || r == ',' }) {
		if a = strings.TrimSpace(a); a != "" && !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// start begins registering at the configured name servers.
func (r *registrar) start() {
	r.mu.Lock()
	r.mu.started = true
	r.mu.Unlock()
	r.setServers(splitNamesrvAddr(r.b.config().NamesrvAddr))
}

// setServers makes addrs the list of name servers: new ones are registered at, old ones forgotten.
func (r *registrar) setServers(addrs []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.started || r.mu.closed {
		return
	}
	old := r.mu.servers
	r.mu.servers = nil
	for _, a := range addrs {
		if i := slices.IndexFunc(old, func(n *nameServer) bool { return n.addr == a }); i >= 0 {
			r.mu.servers = append(r.mu.servers, old[i])
			old = slices.Delete(slices.Clone(old), i, i+1)
			continue
		}
		n := &nameServer{addr: a, wake: make(chan struct{}, 1), stop: make(chan struct{})}
		n.mu.full = true
		r.mu.servers = append(r.mu.servers, n)
		r.wg.Add(1)
		go func() {
			defer r.wg.Done()
			r.serve(n)
		}()
	}
	for _, n := range old {
		close(n.stop)
	}
}

func (r *registrar) servers() []*nameServer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mu.servers)
}

// changed is told of a topic that was created or changed. It is called under the table's lock, so a data
// version that is read later never runs ahead of what is waiting here.
func (r *registrar) changed(c *topics.Config) {
	for _, n := range r.servers() {
		n.mu.Lock()
		if n.mu.topics == nil {
			n.mu.topics = make(map[string]*topics.Config)
		}
		n.mu.topics[c.TopicName] = c
		n.mu.Unlock()
		n.poke()
	}
}

// all has everything registered again.
func (r *registrar) all() {
	for _, n := range r.servers() {
		n.mu.Lock()
		n.mu.full = true
		n.mu.Unlock()
		n.poke()
	}
}

// waitFirst waits until every name server has been tried once, at most until ctx ends.
func (r *registrar) waitFirst(ctx context.Context) {
	r.await(ctx, func(*nameServer) bool { return true })
}

// await waits for the next try at the name servers that which (called under their lock) chooses.
func (r *registrar) await(ctx context.Context, which func(*nameServer) bool) {
	told := make(chan struct{})
	r.notify(which, func() { close(told) })
	select {
	case <-told:
	case <-ctx.Done():
	}
}

// told calls done as soon as every name server that could be reached lately has been told of the changes made so far, or has refused
// them, at the latest after patience. It never blocks; done must not either, and may be called twice.
func (r *registrar) told(patience time.Duration, done func()) {
	late := time.AfterFunc(patience, done)
	r.notify(func(n *nameServer) bool { return n.mu.reached }, func() {
		late.Stop()
		done()
	})
}

// notify calls done once the chosen name servers have been tried: at once when none is chosen, at the latest when they
// are no longer served.
func (r *registrar) notify(which func(*nameServer) bool, done func()) {
	left := new(atomic.Int32)
	left.Store(1) // this call
	one := func() {
		if left.Add(-1) == 0 {
			done()
		}
	}
	for _, n := range r.servers() {
		n.mu.Lock()
		if which(n) {
			left.Add(1)
			n.mu.waiters = append(n.mu.waiters, one)
		}
		n.mu.Unlock()
		n.poke()
	}
	one()
}

func (n *nameServer) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// serve is one name server's goroutine.
func (r *registrar) serve(n *nameServer) {
	defer n.finish()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	first, tries := true, 0
	for {
		n.mu.Lock()
		full, changed, waiters := n.mu.full, n.mu.topics != nil, n.mu.waiters
		n.mu.waiters = nil
		n.mu.Unlock()
		var err error
		switch {
		case full:
			err = r.registerFull(n, first)
			if err == nil {
				next := r.b.config().registerPeriod()
				if first {
					first, next = false, secondRegistration
				}
				timer.Reset(next)
			}
		case changed:
			err = r.registerChanged(n, len(waiters) == 0)
		}
		if full || changed {
			tries = r.note(n, err, tries)
			if err != nil { // a full registration makes up for whatever failed
				n.mu.Lock()
				n.mu.full = true
				n.mu.Unlock()
				timer.Reset(retryPeriod)
			}
		}
		for _, done := range waiters {
			done()
		}
		if err == nil && n.due() {
			continue
		}
		wake := n.wake
		if err != nil {
			wake = nil // not before the retry
		}
		select {
		case <-n.stop:
			return
		case <-wake:
		case <-timer.C:
			n.mu.Lock()
			n.mu.full = true
			n.mu.Unlock()
		}
	}
}

// due tells whether something has been asked for meanwhile.
func (n *nameServer) due() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.full || n.mu.topics != nil || n.mu.waiters != nil
}

// finish calls whoever still waits; the name server is no longer served.
func (n *nameServer) finish() {
	n.mu.Lock()
	waiters := n.mu.waiters
	n.mu.waiters, n.mu.reached = nil, false
	n.mu.Unlock()
	for _, done := range waiters {
		done()
	}
}

// note logs what came of a try: the first failure and the recovery loudly, repetitions not.
func (r *registrar) note(n *nameServer, err error, tries int) int {
	n.mu.Lock()
	was := n.mu.reached
	n.mu.reached = err == nil
	n.mu.Unlock()
	switch {
	case err != nil && tries == 0:
		r.b.log.Warn("not registered at name server; trying again every second", "namesrv", n.addr, "err", err)
	case err != nil:
		r.b.log.Debug("not registered at name server", "namesrv", n.addr, "err", err, "tries", tries)
	case !was:
		r.b.log.Info("registered at name server", "namesrv", n.addr)
	}
	if err != nil {
		return tries + 1
	}
	return 0
}

// close takes the broker off every name server, all at once, and ends the goroutines.
func (r *registrar) close(ctx context.Context) {
	r.mu.Lock()
	servers := r.mu.servers
	r.mu.servers, r.mu.closed = nil, true
	r.mu.Unlock()
	for _, n := range servers {
		close(n.stop)
	}
	// A registration under way must not arrive after the unregistration.
	patience := time.AfterFunc(unregisterPatience, r.cancel)
	r.wg.Wait()
	patience.Stop()
	r.cancel()
	var left sync.WaitGroup
	for _, n := range servers {
		left.Add(1)
		go func() {
			defer left.Done()
			if err := r.unregister(ctx, n.addr); err != nil {
				r.b.log.Warn("not unregistered from name server", "namesrv", n.addr, "err", err)
				return
			}
			r.b.log.Info("unregistered from name server", "namesrv", n.addr)
		}()
	}
	left.Wait()
}
