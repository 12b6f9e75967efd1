package inspect

import (
	"errors"
	"fmt"
	"io/fs"

	"rocketd/compat"
	"rocketd/protocol/body"
	"rocketd/store/vfs"
)

// configFile is one file of configuration or progress in ROOT/config.
type configFile struct {
	name string
	what string // that is counted
	// read decodes the text and counts.
	read func(d *configData, data []byte) (int, error)
}

// configData is what is used of the files' content.
type configData struct {
	topics  map[string]bool
	offsets map[string]map[int32]int64 // of `topic@group`
}

// configFiles is all files that brokers keep there.
var configFiles = []configFile{
	{"topics.json", "topics", func(d *configData, data []byte) (int, error) {
		var w body.TopicConfigSerializeWrapper
		if err := compat.Unmarshal(data, &w); err != nil {
			return 0, err
		}
		if w.TopicConfigTable == nil {
			return 0, errors.New("no topicConfigTable")
		}
		d.topics = make(map[string]bool, len(w.TopicConfigTable))
		for topic := range w.TopicConfigTable {
			d.topics[topic] = true
		}
		return len(w.TopicConfigTable), nil
	}},
	{"subscriptionGroup.json", "groups", func(d *configData, data []byte) (int, error) {
		var w body.SubscriptionGroupWrapper
		if err := compat.Unmarshal(data, &w); err != nil {
			return 0, err
		}
		if w.SubscriptionGroupTable == nil {
			return 0, errors.New("no subscriptionGroupTable")
		}
		return len(w.SubscriptionGroupTable), nil
	}},
	{"consumerOffset.json", "queue offsets", func(d *configData, data []byte) (int, error) {
		var w body.ConsumerOffsetSerializeWrapper
		if err := compat.Unmarshal(data, &w); err != nil {
			return 0, err
		}
		if w.OffsetTable == nil {
			return 0, errors.New("no offsetTable")
		}
		d.offsets = w.OffsetTable
		n := 0
		for _, queues := range w.OffsetTable {
			n += len(queues)
		}
		return n, nil
	}},
	{"delayOffset.json", "delay levels", func(_ *configData, data []byte) (int, error) {
		var w body.DelayOffsetSerializeWrapper
		if err := compat.Unmarshal(data, &w); err != nil {
			return 0, err
		}
		return len(w.OffsetTable), nil
	}},
	{"consumerFilter.json", "topics with filters", func(_ *configData, data []byte) (int, error) {
		var w struct{ FilterDataByTopic map[string]any }
		if err := compat.Unmarshal(data, &w); err != nil {
			return 0, err
		}
		return len(w.FilterDataByTopic), nil
	}},
	{"lmqConsumerOffset.json", "light queues' offsets", func(_ *configData, data []byte) (int, error) {
		var w struct{ OffsetTable map[string]any }
		if err := compat.Unmarshal(data, &w); err != nil {
			return 0, err
		}
		return len(w.OffsetTable), nil
	}},
}

// configState is how one file, or its .bak, was read.
type configState struct {
	there bool
	size  int64
	count int
	err   error // why it can't be read
}

// readConfig reads a file of ROOT/config by name.
func (d *Dir) readConfig(c configFile, name string, into *configData) (s configState, err error) {
	data, err := vfs.Files{FS: d.fs}.ReadFile(d.path("config/" + name))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.there, s.size = true, int64(len(data))
	if len(data) == 0 {
		s.err = errors.New("the file is empty")
		return s, nil
	}
	if s.count, s.err = c.read(into, data); s.err != nil {
		s.err = fmt.Errorf("it can't be read: %w", s.err)
	}
	return s, nil
}
