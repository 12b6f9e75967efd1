package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rocketd/broker/clients"
)

// firstRegistration is how long Start waits for the name servers to know the broker: a client that is started
// next finds it. One that is down does not hold up the start.
const firstRegistration = time.Second

// lastAnswers is how long a stop waits for answers to be sent when its time is over.
const lastAnswers = time.Second

// Start starts the store, opens the ports and registers at the name servers.
func (b *Broker) Start() error {
	b.store.Start()
	if b.accounts != nil {
		b.accounts.Start()
	}
	if err := b.startPath(); err != nil {
		return err
	}
	b.tls.Start()
	if err := b.server.Start(); err != nil {
		return err
	}
	b.port.Store(uint32(b.server.Port()))
	if err := b.fast.Start(); err != nil {
		return err
	}
	b.wg.Add(1)
	go b.housekeeping()
	b.registrar.start()
	ctx, cancel := context.WithTimeout(context.Background(), firstRegistration)
	defer cancel()
	b.registrar.waitFirst(ctx)
	return nil
}

// housekeeping runs what is due by the clock until Close: samples of the counters, offsets to their file, clients
// that have gone silent, consumers that are too slow.
func (b *Broker) housekeeping() {
	defer b.wg.Done()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	scan := time.NewTicker(clients.ScanPeriod)
	defer scan.Stop()
	save := time.NewTicker(b.config().saveOffsetsPeriod())
	defer save.Stop()
	protect := time.NewTicker(protectPeriod)
	defer protect.Stop()
	b.sample()
	var refused []Refusal
	for {
		select {
		case <-b.stop:
			return
		case <-second.C:
			b.sample()
		case <-scan.C:
			b.scanClients()
			b.filters.Expire()
			refused = b.tellRefusals(refused)
		case <-save.C:
			b.saveOffsets()
		case <-protect.C:
			b.protect()
		}
	}
}

// Close ends the broker in the order that loses nothing and leaves nobody waiting:
//
//  1. name servers forget it, so clients that look now go elsewhere;
//  2. no new connections, no new writes;
//  3. held pulls are answered, requests in lanes finish;
//  4. delayed messages and tables are saved, the store is flushed and closed;
//  5. answers that wait are sent, connections are closed.
//
// When ctx ends it stops waiting for peers, but still does the rest. A broker whose Start failed is closed the same
// way. Only the first call does something.
func (b *Broker) Close(ctx context.Context) (err error) {
	b.once.Do(func() { err = b.close(ctx) })
	return err
}

func (b *Broker) close(ctx context.Context) error {
	close(b.stop)
	b.wg.Wait()
	if b.accounts != nil {
		b.accounts.Close()
	}
	b.registrar.close(ctx)
	b.server.StopAccepting()
	b.fast.StopAccepting()
	b.answerHeld()
	b.lanes.close()
	errs := []error{b.closePath()}
	errs = append(errs, b.store.Close())
	// A store with very many new queues takes its time, and has used up that of the peers, who are not at fault.
	peers, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
	defer cancel()
	if ctx.Err() == nil {
		peers = ctx
	}
	errs = append(errs, b.server.Close(peers), b.fast.Close(peers))
	b.client.Close()
	b.tls.Close()
	errs = append(errs, b.closeTables())
	return errors.Join(errs...)
}

func (b *Broker) closeTables() error {
	errs := b.closePopTables()
	if b.filters != nil {
		errs = append(errs, b.filters.Close())
	}
	if b.offsets != nil {
		errs = append(errs, b.offsets.Close())
	}
	if b.locks != nil {
		errs = append(errs, b.locks.Close())
	}
	if b.groups != nil {
		errs = append(errs, b.groups.Close())
	}
	if b.topics != nil {
		errs = append(errs, b.topics.Close())
	}
	return errors.Join(errs...)
}

// abandon gives back what a New that failed has opened.
func (b *Broker) abandon() {
	b.lanes.close()
	if b.client != nil {
		b.client.Close()
	}
	b.tls.Close()
	if b.store != nil {
		_ = b.store.Close()
	}
	_ = b.closeTables()
}

// About is what a started broker says of itself in one line.
func (b *Broker) About() string {
	cfg := b.config()
	namesrv := strings.Join(splitNamesrvAddr(cfg.NamesrvAddr), ";")
	if namesrv == "" {
		namesrv = "none (set namesrvAddr: without a name server clients do not find this broker)"
	}
	return fmt.Sprintf("listening on %s and %s (fast), HA %d reserved, clients are told %s, store %s, cluster %s, name servers %s",
		listening(cfg.ServerConfig, b.server.Port()), listening(cfg.ServerConfig, b.fast.Port()), cfg.HaListenPort, b.Addr(), cfg.StorePathRootDir, cfg.BrokerClusterName, namesrv)
}
