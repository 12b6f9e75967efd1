package broker

import (
	"errors"
	"fmt"
	"math"
	"net"

	"rocketd/broker/topics"
	"rocketd/store"
)

// What the rooms below refuse is refused before they are opened, and by UPDATE_BROKER_CONFIG: a value that is taken
// must not be what keeps the broker from its next start, or from everybody who could change it back.

// leastFrame is the smallest frameMaxLength that requests of administrators and clients fit into.
const leastFrame = 64 << 10

// checkParts asks the parts of the broker whether they can be opened with the configuration.
func (c *Config) checkParts() error {
	var all []error
	if err := c.Config.Check(); err != nil {
		all = append(all, err)
	}
	if _, err := store.ParseDelayLevels(c.MessageDelayLevel); err != nil {
		all = append(all, err)
	}
	if n := c.ServerConfig.FrameMaxLength; n > 0 && n < leastFrame || n > math.MaxInt32 {
		all = append(all, fmt.Errorf("frameMaxLength=%d: must be from %d to %d bytes, or 0 for the default", n, leastFrame, math.MaxInt32))
	}
	if n := c.DefaultTopicQueueNums; n < 1 || n > topics.MaxQueues {
		all = append(all, fmt.Errorf("defaultTopicQueueNums=%d: must be from 1 to %d", n, topics.MaxQueues))
	}
	return errors.Join(all...)
}

// checkChange says what keeps the broker from its next start when next follows on the configuration old, which is
// in force: what the machine and the files of the store do not allow. Only what has changed is looked at.
func (b *Broker) checkChange(old, next *Config) error {
	var all []error
	if b.store.MaxPhyOffset() > 0 {
		for _, size := range []struct {
			key      string
			old, new int
		}{
			{"mappedFileSizeCommitLog", old.MappedFileSizeCommitLog, next.MappedFileSizeCommitLog},
			{"mappedFileSizeConsumeQueue", old.MappedFileSizeConsumeQueue, next.MappedFileSizeConsumeQueue},
		} {
			if size.new != size.old {
				all = append(all, fmt.Errorf("%s=%d: the files of this store are made with %d bytes, and none can be opened with another size", size.key, size.new, size.old))
			}
		}
	}
	if next.BrokerIP1 != old.BrokerIP1 {
		if _, err := advertise(next.BrokerIP1); err != nil {
			all = append(all, err)
		}
	}
	if next.BindAddress != old.BindAddress {
		l, err := net.Listen("tcp", net.JoinHostPort(next.BindAddress, "0"))
		if err != nil {
			all = append(all, fmt.Errorf("bindAddress=%s: %w", next.BindAddress, err))
		} else {
			l.Close()
		}
	}
	return errors.Join(all...)
}
