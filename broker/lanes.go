package broker

import (
	"runtime"

	"rocketd/remoting"
)

// lanes are where requests run. Sends, pulls, heartbeats, offsets and locks run inline: they never wait.
type lanes struct {
	inline *remoting.Lane // never waits: on the connection's goroutine
	query  *remoting.Lane // may read cold pages: queries by key and id, offsets by time, catch-up pulls
	admin  *remoting.Lane // may wait for a file, a cold page or a name server
	scan   *remoting.Lane // reads tables, which takes a processor and never waits
}

// scanWorkers leaves at least half of the processors to sends and pulls, however many administrators ask for tables at
// once: a goroutine that has work for microseconds would else queue behind scans of milliseconds.
func scanWorkers(cfg *Config) int {
	return max(1, min(cfg.AdminBrokerThreadPoolNums, runtime.GOMAXPROCS(0)/2))
}

// queueBound keeps the queue of a lane from holding more than memory can bear, whatever is configured.
const queueBound = 20_000

func newLanes(cfg *Config) lanes {
	return lanes{
		inline: remoting.Inline,
		query: remoting.NewLane("query", max(1, cfg.QueryMessageThreadPoolNums),
			min(max(1, cfg.QueryThreadPoolQueueCapacity), queueBound)),
		admin: remoting.NewLane("admin", max(1, cfg.AdminBrokerThreadPoolNums), queueBound),
		scan:  remoting.NewLane("scan", scanWorkers(cfg), queueBound),
	}
}

// close waits for what runs and refuses the rest.
func (l *lanes) close() {
	l.query.Close()
	l.admin.Close()
	l.scan.Close()
}
