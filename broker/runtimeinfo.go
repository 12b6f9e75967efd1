package broker

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// runtimeInfo (28) is what `mqadmin brokerStatus` and `clusterList` show: texts by key, in the formats of 4.9.8
// (AdminBrokerProcessor#prepareRuntimeInfo). Keys of queues in front of thread pools tell of lanes here; sends and
// pulls have none, so their sizes and waits are 0.
func (b *Broker) runtimeInfo(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	cfg, s := b.config(), &b.stats
	now := b.clock()
	table := make(map[string]string, 64)
	number := func(key string, v int64) { table[key] = strconv.FormatInt(v, 10) }

	table["brokerVersionDesc"] = "V4_9_8"
	number("brokerVersion", int64(protocol.ServerVersion))
	number("bootTimestamp", b.boot.UnixMilli())
	table["runtime"] = formatRuntime(now.Sub(b.boot))

	// Rates and sums.
	table["putTps"] = s.tps(func(x sample) int64 { return x.put })
	table["getFoundTps"] = s.tps(func(x sample) int64 { return x.found })
	table["getMissTps"] = s.tps(func(x sample) int64 { return x.miss })
	table["getTransferedTps"] = s.tps(func(x sample) int64 { return x.transferred })
	table["getTotalTps"] = s.totalTps()
	times := max(1, s.putTimes.Load()) // compat: 1 when nothing was put
	number("putMessageTimesTotal", times)
	number("putMessageSizeTotal", s.putBytes.Load())
	number("putMessageFailedTimes", s.putFailed.Load())
	number("putMessageEntireTimeMax", s.putTimeMax.Load())
	number("getMessageEntireTimeMax", s.getTimeMax.Load())
	number("dispatchMaxBuffer", 0)
	table["putMessageAverageSize"] = javaDouble(float64(s.putBytes.Load()) / float64(times))
	last := s.lastLatency()
	table["putMessageDistributeTime"] = last.distribution()
	table["putLatency99"] = fmt.Sprintf("%.2f", last.percentile(0.99))
	table["putLatency999"] = fmt.Sprintf("%.2f", last.percentile(0.999))
	putYesterday, putToday, getYesterday, getToday := s.mornings()
	number("msgPutTotalYesterdayMorning", putYesterday)
	number("msgPutTotalTodayMorning", putToday)
	number("msgPutTotalTodayNow", s.putTimes.Load())
	number("msgGetTotalYesterdayMorning", getYesterday)
	number("msgGetTotalTodayMorning", getToday)
	number("msgGetTotalTodayNow", s.transferred.Load())

	// Queues of requests.
	number("sendThreadPoolQueueSize", 0)
	number("sendThreadPoolQueueCapacity", int64(cfg.SendThreadPoolQueueCapacity))
	number("pullThreadPoolQueueSize", 0)
	number("pullThreadPoolQueueCapacity", int64(cfg.PullThreadPoolQueueCapacity))
	number("queryThreadPoolQueueSize", int64(b.lanes.query.Queued()))
	number("queryThreadPoolQueueCapacity", int64(b.lanes.query.Capacity()))
	number("EndTransactionQueueSize", 0)
	number("EndTransactionThreadPoolQueueCapacity", int64(cfg.EndTransactionPoolQueueCapacity))
	number("sendThreadPoolQueueHeadWaitTimeMills", 0)
	number("pullThreadPoolQueueHeadWaitTimeMills", 0)
	number("queryThreadPoolQueueHeadWaitTimeMills", 0)
	number("pageCacheLockTimeMills", b.store.LockHeld().Milliseconds())
	number("startAcceptSendRequestTimeStamp", cfg.StartAcceptSendRequestTimeStamp)

	// The store.
	number("dispatchBehindBytes", b.store.DispatchBehind())
	number("commitLogMinOffset", b.store.MinPhyOffset())
	number("commitLogMaxOffset", b.store.MaxPhyOffset())
	number("earliestMessageTimeStamp", b.oldestTime())
	number("remainTransientStoreBufferNumbs", math.MaxInt32)
	table["remainHowManyDataToFlush"] = byteCount(float64(b.store.Unflushed()))
	b.diskInfo(cfg, table)
	b.timerInfo(number, table)
	b.delayStats(func(key, value string) { table[key] = value })
	return withBody(c.Success(nil), &body.KVTable{Table: table})
}

// timerInfo tells of messages with a time of their own, by the keys of 5.3.3: how many wait, how many seconds the delivery is late,
// how many entries of the queue have not been looked at, and the rates of both (there over a moment, here over 10 s). 4.9.8 has
// no such keys; so there are none before the first such message.
func (b *Broker) timerInfo(number func(key string, v int64), table map[string]string) {
	t := b.path.timer.Load()
	if t == nil || b.store.MaxOffset(topics.Timer, 0) == 0 {
		return
	}
	s, late := t.Standing(), int64(0)
	if s.NextDue > 0 {
		late = max(0, b.clock().UnixMilli()-s.NextDue) / 1000
	}
	number("timerReadBehind", late)
	number("timerOffsetBehind", s.Unread)
	number("timerCongestNum", s.Waiting)
	table["timerEnqueueTps"] = b.stats.recentTps(func(x sample) int64 { return x.timerIn })
	table["timerDequeueTps"] = b.stats.recentTps(func(x sample) int64 { return x.timerOut })
}

// oldestTime is the store time (ms) of the oldest message in the log, -1 when there is none.
func (b *Broker) oldestTime() int64 {
	at := b.store.MinPhyOffset()
	if at >= b.store.MaxPhyOffset() {
		return -1
	}
	m, err := b.store.Message(at)
	if err != nil {
		return -1
	}
	return m.StoreTimestamp
}

// diskInfo tells how full the disks are: as shares of 1, and in words.
func (b *Broker) diskInfo(cfg *Config, table map[string]string) {
	log := cfg.CommitLogDir()
	share := func(dir string) string { return javaDouble(b.diskUsed(dir)) }
	table["commitLogDiskRatio"] = share(log)
	table["commitLogDiskRatio_"+log] = table["commitLogDiskRatio"]
	table["consumeQueueDiskRatio"] = share(cfg.StorePathRootDir)
	_, free, err := b.fs.Usage(cfg.StorePathRootDir)
	total, errToo := b.fs.Capacity(cfg.StorePathRootDir)
	if err == nil && errToo == nil {
		table["commitLogDirCapacity"] = fmt.Sprintf("Total : %s, Free : %s.", byteCount(float64(total)), byteCount(float64(free)))
	}
}

// diskUsed is the used share (0 to 1, rounded up to hundredths) of the disk that holds dir, -1 when that can't be
// told, as UtilAll#getDiskPartitionSpaceUsedPercent.
func (b *Broker) diskUsed(dir string) float64 {
	used, _, err := b.fs.Usage(dir)
	if err != nil {
		return -1
	}
	return math.Ceil(used*100) / 100
}

// byteCount is a number of bytes for people, with binary units, as MixAll#humanReadableByteCount.
func byteCount(n float64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", int64(n))
	}
	i := -1
	for n >= 1024 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return fmt.Sprintf("%.1f %ciB", n, units[i])
}

// formatRuntime is a duration as the official broker tells its age.
func formatRuntime(d time.Duration) string {
	s := int64(d / time.Second)
	return fmt.Sprintf("[ %d days, %d hours, %d minutes, %d seconds ]", s/86400, s%86400/3600, s%3600/60, s%60)
}

func javaDouble(v float64) string { return string(compat.AppendDouble(nil, v)) }
