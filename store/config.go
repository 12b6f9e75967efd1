package store

// Config is the MessageStoreConfig of 4.9.8: field FlushDiskType is key flushDiskType of broker.conf.
// Types follow Java's (int is int32 there too); defaults are those of DefaultConfig. Sizes are bytes and times
// milliseconds unless the comment says otherwise; a page is 4 KiB.
type Config struct {
	// Where the files lie.

	StorePathRootDir            string // ROOT of the store
	StorePathCommitLog          string // folder of the commit log; "" is ROOT/commitlog. A list with `,` is refused
	StorePathDLedgerCommitLog   string // DLedger's data folder; no effect yet
	ReadOnlyCommitLogStorePaths string // more, read-only, commit-log folders; refused when set

	// Sizes of the files; existing files must agree.

	MappedFileSizeCommitLog       int  // bytes of a commit-log file
	MappedFileSizeConsumeQueue    int  // bytes of a consume-queue file, rounded up to a multiple of 20
	EnableConsumeQueueExt         bool // write consumequeue_ext, which spares filters by SQL92 the reading of records
	MappedFileSizeConsumeQueueExt int  // bytes of a consumequeue_ext file, of which each queue has one at least
	BitMapLengthConsumeQueueExt   int  // bits of a filter's bit map; the official broker makes its buffers by it, no effect here
	MaxHashSlotNum                int  // hash slots of an index file
	MaxIndexNum                   int  // entries of an index file

	// Flushing.

	FlushDiskType                     string // ASYNC_FLUSH, or SYNC_FLUSH: durable before the answer
	SyncFlushTimeout                  int    // a sync flush that takes longer is answered FLUSH_DISK_TIMEOUT
	FlushIntervalCommitLog            int    // between two flushes of the log
	FlushCommitLogTimed               bool   // sleep, or wait to be woken, between two flushes
	FlushCommitLogLeastPages          int    // pages that a flush must have to be worth while
	FlushCommitLogThoroughInterval    int    // after this everything is flushed
	CommitIntervalCommitLog           int    // transient store pool: between two commits
	CommitCommitLogLeastPages         int    // transient store pool: pages worth a commit
	CommitCommitLogThoroughInterval   int    // transient store pool: after this everything is committed
	FlushIntervalConsumeQueue         int    // between two flushes of the queues
	FlushConsumeQueueLeastPages       int    // pages of a queue worth a flush
	FlushConsumeQueueThoroughInterval int    // after this every queue and the checkpoint are flushed
	FlushDelayOffsetInterval          int64  // between two writes of delayOffset.json

	// Memory and locks of the official server; accepted, no effect here except where said.

	TransientStorePoolEnable         bool
	TransientStorePoolSize           int
	FastFailIfNoBufferInStorePool    bool
	WarmMapedFileEnable              bool
	FlushLeastPagesWhenWarmMapedFile int // pages
	UseReentrantLockWhenPutMessage   bool
	DebugLockEnable                  bool
	OsPageCacheBusyTimeOutMills      int64 // an append lock held longer makes sends SYSTEM_BUSY (has effect)
	PutMsgIndexHightWater            int

	// Cleaning.

	CleanResourceInterval            int    // between two runs of cleaning
	FileReservedTime                 int    // hours that a file is kept
	DeleteWhen                       string // hours of the day in which expired files go, `04;16`
	DiskMaxUsedSpaceRatio            int    // percent; above, expired files go at any hour (clamped to 10..95)
	DiskMinFreeBytes                 int64  // our own key: with less free bytes files go and writes are refused; 0: no such limit
	CleanFileForciblyEnable          bool   // above diskSpaceCleanForciblyRatio files go before they have expired
	DiskSpaceWarningLevelRatio       int    // percent; above, writes are refused. A key of 5.x, a system property of 4.9.8. Live
	DiskSpaceCleanForciblyRatio      int    // percent; above, files go before they have expired. A key of 5.x, a system property of 4.9.8. Live
	DeleteCommitLogFilesInterval     int    // between two deletions
	DeleteConsumeQueueFilesInterval  int    // between two deletions
	DestroyMapedFileIntervalForcibly int    // how long a file's reader may hold it back
	RedeleteHangedFileInterval       int    // between two tries at a file held back

	// Messages.

	MaxMessageSize     int // bytes of a body; a record may have 64 KiB more. Live
	CheckCRCOnRecover  bool
	MessageIndexEnable bool
	MessageIndexSafe   bool // recovery heeds the index's checkpoint too
	MaxMsgsNumBatch    int  // records of a query by key, at most
	DefaultQueryMaxNum int  // records of a query by unique key
	MessageDelayLevel  string

	// Reading; live.

	MaxTransferBytesOnMessageInMemory int // of one pull
	MaxTransferCountOnMessageInMemory int
	MaxTransferBytesOnMessageInDisk   int // of one pull far behind the log's end
	MaxTransferCountOnMessageInDisk   int
	AccessMessageInMemoryMaxRatio     int // percent of memory behind the log's end that counts as "in memory"
	DiskFallRecorded                  bool

	// Replication.

	BrokerRole              string // ASYNC_MASTER, SYNC_MASTER, SLAVE
	SlaveTimeout            int
	HaListenPort            int // always listenPort+1
	HaSendHeartbeatInterval int
	HaHousekeepingInterval  int
	HaTransferBatchSize     int
	HaMasterAddress         string
	HaSlaveFallbehindMax    int // bytes
	OffsetCheckInSlave      bool
	DuplicationEnable       bool

	// DLedger.

	EnableDLegerCommitLog bool
	DLegerGroup           string
	DLegerPeers           string
	DLegerSelfId          string
	PreferredLeaderId     string
	IsEnableBatchPush     bool

	// Delayed messages and light message queues.

	EnableScheduleMessageStats               bool
	EnableScheduleAsyncDeliver               bool
	ScheduleAsyncDeliverMaxPendingLimit      int
	ScheduleAsyncDeliverMaxResendNum2Blocked int
	TimerWheelEnable                         bool // 5.x: deliver messages at a time of their own (TIMER_DELIVER_MS, …); false: such properties mean nothing, as to 4.9.8
	TimerMaxDelaySec                         int  // 5.x: seconds that such a message may be put off, at most. Live
	TimerFlushIntervalMs                     int  // 5.x: between two writes of rocketd-timer.json
	EnableLmq                                bool // %LMQ% names in INNER_MULTI_DISPATCH have one queue; broker: such topics and groups need no table. Read at start
	EnableMultiDispatch                      bool // messages enter the queues that their INNER_MULTI_DISPATCH names. Read at start
	MaxLmqConsumeQueueNum                    int  // more light message queues: nothing is read from any. Live
}

// Values of FlushDiskType and BrokerRole.
const (
	AsyncFlush  = "ASYNC_FLUSH"
	SyncFlush   = "SYNC_FLUSH"
	AsyncMaster = "ASYNC_MASTER"
	SyncMaster  = "SYNC_MASTER"
	Slave       = "SLAVE"
)

// DefaultConfig returns the official defaults for a store at root.
func DefaultConfig(root string) Config {
	return Config{
		StorePathRootDir: root,

		MappedFileSizeCommitLog:       1 << 30,
		MappedFileSizeConsumeQueue:    300_000 * 20,
		MappedFileSizeConsumeQueueExt: 48 << 20,
		BitMapLengthConsumeQueueExt:   64,
		MaxHashSlotNum:                5_000_000,
		MaxIndexNum:                   20_000_000,

		FlushDiskType:                     AsyncFlush,
		SyncFlushTimeout:                  5_000,
		FlushIntervalCommitLog:            500,
		FlushCommitLogTimed:               true,
		FlushCommitLogLeastPages:          4,
		FlushCommitLogThoroughInterval:    10_000,
		CommitIntervalCommitLog:           200,
		CommitCommitLogLeastPages:         4,
		CommitCommitLogThoroughInterval:   200,
		FlushIntervalConsumeQueue:         1_000,
		FlushConsumeQueueLeastPages:       2,
		FlushConsumeQueueThoroughInterval: 60_000,
		FlushDelayOffsetInterval:          10_000,

		TransientStorePoolSize:           5,
		FlushLeastPagesWhenWarmMapedFile: 4_096,
		UseReentrantLockWhenPutMessage:   true,
		OsPageCacheBusyTimeOutMills:      1_000,
		PutMsgIndexHightWater:            600_000,

		CleanResourceInterval:            10_000,
		FileReservedTime:                 72,
		DeleteWhen:                       "04",
		DiskMaxUsedSpaceRatio:            75,
		CleanFileForciblyEnable:          true,
		DiskSpaceWarningLevelRatio:       90,
		DiskSpaceCleanForciblyRatio:      85,
		DeleteCommitLogFilesInterval:     100,
		DeleteConsumeQueueFilesInterval:  100,
		DestroyMapedFileIntervalForcibly: 120_000,
		RedeleteHangedFileInterval:       120_000,

		MaxMessageSize:     4 << 20,
		CheckCRCOnRecover:  true,
		MessageIndexEnable: true,
		MaxMsgsNumBatch:    64,
		DefaultQueryMaxNum: 32,
		MessageDelayLevel:  "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",

		MaxTransferBytesOnMessageInMemory: 256 << 10,
		MaxTransferCountOnMessageInMemory: 32,
		MaxTransferBytesOnMessageInDisk:   64 << 10,
		MaxTransferCountOnMessageInDisk:   8,
		AccessMessageInMemoryMaxRatio:     40,
		DiskFallRecorded:                  true,

		BrokerRole:              AsyncMaster,
		SlaveTimeout:            3_000,
		HaListenPort:            10912,
		HaSendHeartbeatInterval: 5_000,
		HaHousekeepingInterval:  20_000,
		HaTransferBatchSize:     32 << 10,
		HaSlaveFallbehindMax:    256 << 20,

		EnableScheduleMessageStats:               true,
		ScheduleAsyncDeliverMaxPendingLimit:      2_000,
		ScheduleAsyncDeliverMaxResendNum2Blocked: 3,
		TimerWheelEnable:                         true,
		TimerMaxDelaySec:                         40 * 24 * 3600,
		TimerFlushIntervalMs:                     1_000,
		MaxLmqConsumeQueueNum:                    20_000,
	}
}
