package clients

import (
	"log/slog"
	"sync"
	"time"

	"rocketd/remoting"
)

// Producers is the table of producer groups; it is safe for concurrent use.
type Producers struct {
	clock func() time.Time
	log   *slog.Logger

	mu struct {
		sync.RWMutex
		groups map[string]map[*remoting.Conn]*Member
		byId   map[string]*remoting.Conn // the newest connection of each clientId
	}
}

// NewProducers makes an empty table.
func NewProducers(clock func() time.Time, log *slog.Logger) *Producers {
	t := &Producers{clock: clock, log: log}
	t.mu.groups = make(map[string]map[*remoting.Conn]*Member)
	t.mu.byId = make(map[string]*remoting.Conn)
	return t
}
