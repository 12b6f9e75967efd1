package broker

import (
	"maps"
	"strings"
)

// noEffect are the keys that are kept and shown, and change nothing, by the reason.
var noEffect = []struct{ reason, keys string }{
	{"requests have no thread pools and no queues in front of these; lanes have bounds of their own", `
		brokerFastFailureEnable waitTimeMillsInSendQueue waitTimeMillsInPullQueue waitTimeMillsInHeartbeatQueue
		waitTimeMillsInTransactionQueue clientManageThreadPoolNums clientManagerThreadPoolQueueCapacity
		sendMessageThreadPoolNums putMessageFutureThreadPoolNums pullMessageThreadPoolNums
		processReplyMessageThreadPoolNums consumerManageThreadPoolNums heartbeatThreadPoolNums
		endTransactionThreadPoolNums sendThreadPoolQueueCapacity putThreadPoolQueueCapacity
		pullThreadPoolQueueCapacity consumerManagerThreadPoolQueueCapacity
		heartbeatThreadPoolQueueCapacity endTransactionPoolQueueCapacity`},
	{"settings of Netty; the network layer is another one", `
		serverWorkerThreads serverCallbackExecutorThreads serverSelectorThreads serverOnewaySemaphoreValue
		serverAsyncSemaphoreValue serverSocketSndBufSize serverSocketRcvBufSize serverPooledByteBufAllocatorEnable
		useEpollNativeSelector writeBufferHighWaterMark writeBufferLowWaterMark clientWorkerThreads
		clientCallbackExecutorThreads clientOnewaySemaphoreValue clientAsyncSemaphoreValue channelNotActiveInterval
		clientSocketSndBufSize clientSocketRcvBufSize clientPooledByteBufAllocatorEnable`},
	{"messages are written to the page cache at once, through no mapping and no pool of buffers; no reader holds a file back", `
		commitIntervalCommitLog commitCommitLogLeastPages commitCommitLogThoroughInterval transientStorePoolEnable
		transientStorePoolSize fastFailIfNoBufferInStorePool warmMapedFileEnable flushLeastPagesWhenWarmMapedFile
		destroyMapedFileIntervalForcibly redeleteHangedFileInterval`},
	{"the log is flushed one interval after the first byte that is not durable, whoever comes meanwhile", "flushCommitLogTimed"},
	{"the lock of the log and the stacks are Go's", "useReentrantLockWhenPutMessage debugLockEnable"},
	{"an answer has one copy of its messages in any case", "transferMsgByHeap"},
	{"delayed messages are delivered in runs in any case", `
		enableScheduleAsyncDeliver scheduleAsyncDeliverMaxPendingLimit scheduleAsyncDeliverMaxResendNum2Blocked`},
	{"statistics are always detailed, and go with their topic and group", "enableDetailStat autoDeleteUnusedStats"},
	{"counts for a commercial edition; the open one has no more of it than the keys", `
		commercialEnable commercialTimerCount commercialTransCount commercialBigCount commercialBaseCount`},
	{"the official broker makes nothing of it either", `
		flushConsumerOffsetHistoryInterval filterServerNums highSpeedMode maxDelayTime isolateLogEnable
		putMsgIndexHightWater`},
	{"replication is not served yet", `
		slaveReadEnable slaveTimeout haSendHeartbeatInterval haHousekeepingInterval haTransferBatchSize haMasterAddress
		haSlaveFallbehindMax`},
	{"DLedger is not served", `
		storePathDLedgerCommitLog dLegerGroup dLegerPeers dLegerSelfId preferredLeaderId isEnableBatchPush`},
	{"follows from expectConsumerNumUseFilter and maxErrorRateOfBloomFilter", "bitMapLengthConsumeQueueExt"},
}

// withoutEffect is noEffect by key.
var withoutEffect = func() map[string]string {
	all := make(map[string]string)
	for _, r := range noEffect {
		for _, key := range strings.Fields(r.keys) {
			all[key] = r.reason
		}
	}
	return all
}()

// WithoutEffect returns why each key has none that is accepted, kept and shown, and changes nothing.
func WithoutEffect() map[string]string { return maps.Clone(withoutEffect) }
