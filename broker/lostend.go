package broker

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// crashed tells whether the store was not closed by who used it last. To be asked before the store is opened.
func (b *Broker) crashed(cfg *Config) (bool, error) {
	_, err := b.fs.Stat(filepath.Join(cfg.StorePathRootDir, "abort"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// limitOffsets takes back consumer offsets beyond their queues after a crash. With asynchronous flush a power failure may cost the end
// of a queue that was consumed and committed, and the file of offsets is synced on its own: the messages that get the lost
// offsets now would be skipped. 4.9.8 leaves such offsets alone; so do we after a clean stop, where they are somebody's wish.
func (b *Broker) limitOffsets() {
	b.offsets.Limit(func(topic string, queueId int32) (int64, bool) {
		end := b.store.MaxOffset(topic, queueId)
		_, known := b.topics.Lookup(topic)
		return end, known || end > 0
	})
}
