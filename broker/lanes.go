package broker

import "rocketd/remoting"

// lanes are where requests run. Sends, pulls, heartbeats, offsets and locks run inline: they never wait.
type lanes struct {
	inline *remoting.Lane // never waits: on the connection's goroutine
	query  *remoting.Lane // may read cold pages: queries by key and id, offsets by time, catch-up pulls
	admin  *remoting.Lane // may scan tables or wait for a file or a name server
}

// queueBound keeps the queue of a lane from holding more than memory can bear, whatever is configured.
const queueBound = 20_000

func newLanes(cfg *Config) lanes {
	return lanes{
		inline: remoting.Inline,
		query: remoting.NewLane("query", max(1, cfg.QueryMessageThreadPoolNums),
			min(max(1, cfg.QueryThreadPoolQueueCapacity), queueBound)),
		admin: remoting.NewLane("admin", max(1, cfg.AdminBrokerThreadPoolNums), queueBound),
	}
}

// close waits for what runs and refuses the rest.
func (l *lanes) close() {
	l.query.Close()
	l.admin.Close()
}
