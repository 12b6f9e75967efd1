package delay

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"rocketd/compat"
	"rocketd/protocol/body"
)

// firstSave is when the places are saved first, saveTimeout how long a save waits for the log to be durable.
const (
	firstSave   = 10 * time.Second
	saveTimeout = 15 * time.Second
)

// file is the state of the config file.
type file struct {
	saver *compat.Saver
	mu    struct {
		sync.Mutex
		table  map[int32]int64 // what is in the file, or to be written next; unknown levels are kept
		closed bool
	}
}

// lost is what it means to start without the file.
const lost = "delayed messages and retries that are still in the store are delivered again, also those that were delivered before"

// load reads the file, or its .bak.
func (d *Delay) load() error {
	table := map[int32]int64{}
	_, err := compat.LoadConfigFileOrNone(d.o.Files, d.o.Path, d.o.Log, lost, func(b []byte) error {
		var t body.DelayOffsetSerializeWrapper
		if err := compat.Unmarshal(b, &t); err != nil {
			return err
		}
		clear(table)
		maps.Copy(table, t.OffsetTable)
		return nil
	})
	if err != nil {
		return fmt.Errorf("delay: %w", err)
	}
	for _, l := range d.levels {
		l.offset.Store(table[int32(l.n)])
	}
	d.file.mu.table = table
	d.file.saver = compat.NewSaver(d.o.Files, d.o.Path, d.encode, d.o.Log)
	return nil
}

func (d *Delay) encode() ([]byte, error) {
	d.file.mu.Lock()
	defer d.file.mu.Unlock()
	return compat.MarshalPretty(&body.DelayOffsetSerializeWrapper{OffsetTable: d.file.mu.table})
}

// saveLoop has the places written every SavePeriod, the first time after 10 s, as 4.9.8 does.
func (d *Delay) saveLoop() {
	defer d.running.Done()
	t := time.NewTimer(firstSave)
	defer t.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-t.C:
			d.save()
			t.Reset(max(d.o.SavePeriod, time.Millisecond))
		}
	}
}

// save has the places of now written once the copies before them are durable. It does not wait.
func (d *Delay) save() {
	places := d.Offsets() // before end: so end is behind every copy that the places count
	end := d.end.Load()
	if d.same(places) {
		return
	}
	write := func(err error) {
		if err != nil {
			d.o.Log.Warn("delay offsets not saved: the delivered messages are not durable", "err", err)
			return
		}
		if d.keep(places) {
			d.file.saver.Changed(nil)
		}
	}
	if end == 0 {
		write(nil) // nothing delivered since the start: places that were put right
		return
	}
	d.o.Store.WaitFlushed(end, saveTimeout, write)
}

// same tells whether the file has these places.
func (d *Delay) same(places map[int32]int64) bool {
	d.file.mu.Lock()
	defer d.file.mu.Unlock()
	for n, offset := range places {
		if was, ok := d.file.mu.table[n]; !ok && offset != 0 || ok && was != offset {
			return false
		}
	}
	return true
}

// keep makes places what is written next; false when the file is closed.
func (d *Delay) keep(places map[int32]int64) bool {
	d.file.mu.Lock()
	defer d.file.mu.Unlock()
	if d.file.mu.closed {
		return false
	}
	for n, offset := range places {
		if was, ok := d.file.mu.table[n]; ok || offset != was {
			d.file.mu.table[n] = offset
		}
	}
	return true
}

// closeFile writes the last places. It does not wait for the log: the store that closes next makes it durable.
func (d *Delay) closeFile() error {
	places := d.Offsets()
	if !d.same(places) {
		d.keep(places)
		d.file.saver.Changed(nil)
	}
	d.file.mu.Lock()
	d.file.mu.closed = true
	d.file.mu.Unlock()
	return d.file.saver.Close()
}
