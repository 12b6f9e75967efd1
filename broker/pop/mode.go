package pop

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"rocketd/compat"
	"rocketd/protocol/body"
)

// Modes is how the groups take messages of their topics, by pull or by pop, and its file
// config/messageRequestMode.json (MessageRequestModeManager of 5.3.3). It is safe for concurrent use.
type Modes struct {
	saver   *compat.Saver
	limit   func() int // maxRequestModes, as it is now; nil or 0 = no bound
	refused atomic.Int64
	mu      struct {
		sync.RWMutex
		count int
		m     map[string]map[string]*body.SetMessageRequestModeRequestBody // entries are never changed, only replaced
	}
}

// modesLost is what it means to start without the file.
const modesLost = "groups that were told to take messages by POP pull them; tell them again with mqadmin setConsumeMode"

// OpenModes makes the table with what the file holds.
func OpenModes(path string, files compat.FileSystem, log *slog.Logger, limit func() int) (*Modes, error) {
	t := &Modes{limit: limit}
	t.mu.m = make(map[string]map[string]*body.SetMessageRequestModeRequestBody)
	_, err := compat.LoadConfigFileOrNone(files, path, log, modesLost, func(data []byte) error {
		f := new(body.MessageRequestModes)
		if err := compat.Unmarshal(data, f); err != nil {
			return err
		}
		if f.MessageRequestModeMap == nil {
			return fmt.Errorf("no messageRequestModeMap")
		}
		for _, groups := range f.MessageRequestModeMap {
			for group, mode := range groups {
				if mode == nil {
					delete(groups, group)
				}
			}
		}
		t.mu.m, t.mu.count = f.MessageRequestModeMap, 0
		for _, groups := range t.mu.m {
			t.mu.count += len(groups)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("request modes: %w", err)
	}
	t.saver = compat.NewSaver(files, path, t.Encode, log)
	return t, nil
}

// ErrModes says that there are as many request modes as there may be.
var ErrModes = errors.New("there are as many request modes as maxRequestModes allows")

// Refused is how many request modes were not set since the start because there were too many.
func (t *Modes) Refused() int64 { return t.refused.Load() }

// Set sets how a group takes messages of a topic; done is called when the file has it, or with ErrModes.
func (t *Modes) Set(mode *body.SetMessageRequestModeRequestBody, done func(error)) {
	t.mu.Lock()
	groups := t.mu.m[mode.Topic]
	if groups[mode.ConsumerGroup] == nil {
		if limit := t.most(); limit > 0 && t.mu.count >= limit {
			t.mu.Unlock()
			t.refused.Add(1)
			done(ErrModes)
			return
		}
		t.mu.count++
	}
	if groups == nil {
		groups = make(map[string]*body.SetMessageRequestModeRequestBody)
		t.mu.m[mode.Topic] = groups
	}
	groups[mode.ConsumerGroup] = mode
	t.mu.Unlock()
	t.saver.Changed(done)
}

func (t *Modes) most() int {
	if t.limit == nil {
		return 0
	}
	return t.limit()
}

// Find returns how a group takes messages of a topic, nil when nobody has said; it must not be changed.
func (t *Modes) Find(topic, group string) *body.SetMessageRequestModeRequestBody {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mu.m[topic][group]
}

// All is the whole table.
func (t *Modes) All() *body.MessageRequestModes {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := &body.MessageRequestModes{MessageRequestModeMap: make(map[string]map[string]*body.SetMessageRequestModeRequestBody, len(t.mu.m))}
	for topic, groups := range t.mu.m {
		all.MessageRequestModeMap[topic] = maps.Clone(groups)
	}
	return all
}

// Encode is the text of the file.
func (t *Modes) Encode() ([]byte, error) { return compat.MarshalPretty(t.All()) }

// Close writes what is not yet written and ends the writer.
func (t *Modes) Close() error { return t.saver.Close() }
