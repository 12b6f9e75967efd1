package broker

import (
	"path/filepath"
	"runtime"
	"time"

	"rocketd/compat"
	"rocketd/remoting"
	"rocketd/remoting/acl/admin"
	"rocketd/store"
)

// Config is everything that broker.conf can say: the store's keys, those of both ends of remoting, and the
// BrokerConfig of 4.9.8. Field BrokerClusterName is key brokerClusterName. Times are ms unless a comment says
// otherwise. "Accepted" keys are kept and shown by GET_BROKER_CONFIG and change nothing here.
type Config struct {
	store.Config
	remoting.ServerConfig
	remoting.ClientConfig
	PopConfig
	LimitConfig
	admin.SurfaceConfig

	// Who this broker is and where it is found.

	RocketmqHome      string // official home directory; configuration of other tools lies there
	NamesrvAddr       string // name servers, `host:port;host:port`; "" = none
	BrokerIP1         string // address told to clients and written as store host: an IP or a name
	BrokerIP2         string // address told to slaves
	BrokerName        string // name of the set; also a topic
	BrokerClusterName string // cluster; also a topic and the CLUSTER property of every message
	BrokerId          int64  // 0 = master
	BrokerPermission  int32  // 6 = RW; limits every topic. Live
	RegionId          string // MSG_REGION of send answers
	TraceOn           bool   // TRACE_ON of send answers. Live

	// Topics and groups.

	DefaultTopicQueueNums       int32 // queues of TBW102, the most an auto-created topic gets
	AutoCreateTopicEnable       bool  // live
	ClusterTopicEnable          bool  // the cluster-named topic may be read and written
	BrokerTopicEnable           bool  // the broker-named topic may be read and written
	AutoCreateSubscriptionGroup bool  // live
	TraceTopicEnable            bool  // create the trace topic at start
	MsgTraceTopicName           string

	// Registration at the name servers.

	RegisterNameServerPeriod   int  // between two registrations, clamped to 10 s .. 60 s. Live
	RegisterBrokerTimeoutMills int  // for one name server
	ForceRegister              bool // false: ask each name server by 322 whether it needs one. Live
	CompressedRegister         bool // send the deflated form. Live

	// Serving clients; live.

	LongPollingEnable                  bool
	ShortPollingTimeMills              int64
	NotifyConsumerIdsChangedEnable     bool
	SlaveReadEnable                    bool
	StartAcceptSendRequestTimeStamp    int64 // ms since 1970; sends before it are refused
	FlushConsumerOffsetInterval        int   // between two writes of consumerOffset.json; read at start
	BrokerFastFailureEnable            bool
	WaitTimeMillsInSendQueue           int64
	WaitTimeMillsInPullQueue           int64
	WaitTimeMillsInHeartbeatQueue      int64
	WaitTimeMillsInTransactionQueue    int64
	DisableConsumeIfConsumerReadSlowly bool
	ConsumerFallbehindThreshold        int64  // bytes
	StoreReplyMessageEnable            bool   // store replies too, beside handing them to who waits for them
	ConfigBlackList                    string // `;` list of keys that UPDATE_BROKER_CONFIG refuses

	// Transactions.

	RejectTransactionMessage bool  // half messages are answered NO_PERMISSION
	TransactionTimeOut       int64 // ms; a half message's age when its producer is asked first
	TransactionCheckMax      int   // then it goes to TRANS_CHECK_MAX_TIME_TOPIC
	TransactionCheckInterval int64 // ms between two rounds of checks

	// Timer messages.

	RecallMessageEnable bool // 5.x: serve RECALL_MESSAGE; else it is answered NO_PERMISSION. Live

	EnableTopicMessageTypeCheck bool // own key, off: refuse messages of another type than the attribute message.type of their topic says. Live

	// Message filters.

	EnablePropertyFilter       bool  // serve SQL92 expressions; else they are refused. Live
	EnableCalcFilterBitMap     bool  // evaluate every expression when a message is dispatched. Live
	ExpectConsumerNumUseFilter int   // the bloom filter's size, by the consumers it is made for. Read at start
	MaxErrorRateOfBloomFilter  int   // the bloom filter's size, by percent of messages looked at in vain. Read at start
	FilterDataCleanTimeSpan    int64 // how long the expression of a consumer that is gone is kept. Live
	FilterSupportRetry         bool  // retried messages have to fulfil the expression of their first topic too. Live

	// Lanes: workers and bounds of their queues.

	QueryMessageThreadPoolNums           int
	AdminBrokerThreadPoolNums            int
	ClientManageThreadPoolNums           int
	QueryThreadPoolQueueCapacity         int
	ClientManagerThreadPoolQueueCapacity int
	ReplyThreadPoolQueueCapacity         int // replies that may wait for a requester at once. Live

	// Access control.

	AclEnable    bool   // check every request by the ACL files below rocketmqHome. Read at start
	AclPlainFile string // the default ACL file, below rocketmqHome; property rocketmq.acl.plain.file of the official broker. Read at start

	// Own key: accessKey and secretKey (a file like mqadmin's tools.yml) that sign what goes to name servers; "" = not signed, as
	// officially. Read at start and again with the configuration file.
	NamesrvAccountFile string

	// Accepted.

	MessageStorePlugIn                     string
	SendMessageThreadPoolNums              int
	PutMessageFutureThreadPoolNums         int
	PullMessageThreadPoolNums              int
	ProcessReplyMessageThreadPoolNums      int
	ConsumerManageThreadPoolNums           int
	HeartbeatThreadPoolNums                int
	EndTransactionThreadPoolNums           int
	FlushConsumerOffsetHistoryInterval     int
	FetchNamesrvAddrByAddressServer        bool // connections to name servers are TLS; unset = what tls.enable says, or whether tls.server.mode is enforcing
	SendThreadPoolQueueCapacity            int
	PutThreadPoolQueueCapacity             int
	PullThreadPoolQueueCapacity            int
	ConsumerManagerThreadPoolQueueCapacity int
	HeartbeatThreadPoolQueueCapacity       int
	EndTransactionPoolQueueCapacity        int
	FilterServerNums                       int
	HighSpeedMode                          bool
	CommercialEnable                       bool
	CommercialTimerCount                   int
	CommercialTransCount                   int
	CommercialBigCount                     int
	CommercialBaseCount                    int
	TransferMsgByHeap                      bool
	MaxDelayTime                           int
	EnableDetailStat                       bool
	AutoDeleteUnusedStats                  bool
	IsolateLogEnable                       bool

	// Accepted: NettyServerConfig and NettyClientConfig.

	ServerWorkerThreads                int
	ServerCallbackExecutorThreads      int
	ServerSelectorThreads              int
	ServerOnewaySemaphoreValue         int
	ServerAsyncSemaphoreValue          int
	ServerSocketSndBufSize             int
	ServerSocketRcvBufSize             int
	ServerPooledByteBufAllocatorEnable bool
	UseEpollNativeSelector             bool
	WriteBufferHighWaterMark           int
	WriteBufferLowWaterMark            int
	ClientWorkerThreads                int
	ClientCallbackExecutorThreads      int
	ClientOnewaySemaphoreValue         int
	ClientAsyncSemaphoreValue          int
	ChannelNotActiveInterval           int64
	ClientSocketSndBufSize             int
	ClientSocketRcvBufSize             int
	ClientPooledByteBufAllocatorEnable bool
	UseTLS                             bool // refused when true

	TLS      remoting.TLSConfig `rmq:"-"` // tls.server.… and so on; see there. Read at start
	dialsSet bool               // useTLS was given

	file  string            // the configuration file, "" = none; UPDATE_BROKER_CONFIG writes to it
	extra []compat.KeyValue // keys of the file that have no field
	odd   []compat.KeyValue // booleans of the file that are neither true nor false

	twice   []string // keys that the file has with different values
	strange []error  // values of the file that an update of a running broker could not set
}

// DefaultBrokerName is the broker's name when the host's is unknown.
const DefaultBrokerName = "DEFAULT_BROKER"

// DefaultConfig returns the official defaults for a broker whose store lies at storeRoot. brokerName and
// brokerIP1 stay empty: they depend on the host and are chosen at start.
func DefaultConfig(storeRoot string) Config {
	cores := runtime.NumCPU()
	c := Config{
		Config:       store.DefaultConfig(storeRoot),
		ServerConfig: remoting.DefaultServerConfig(),
		ClientConfig: remoting.DefaultClientConfig(),
		PopConfig:    defaultPopConfig(),
		LimitConfig:  defaultLimits(),

		BrokerClusterName: "DefaultCluster",
		BrokerPermission:  6,
		RegionId:          "DefaultRegion",
		TraceOn:           true,

		DefaultTopicQueueNums:       8,
		AutoCreateTopicEnable:       true,
		ClusterTopicEnable:          true,
		BrokerTopicEnable:           true,
		AutoCreateSubscriptionGroup: true,
		MsgTraceTopicName:           "RMQ_SYS_TRACE_TOPIC",

		RegisterNameServerPeriod:   30_000,
		RegisterBrokerTimeoutMills: 6_000,
		ForceRegister:              true,

		LongPollingEnable:               true,
		ShortPollingTimeMills:           1_000,
		NotifyConsumerIdsChangedEnable:  true,
		FlushConsumerOffsetInterval:     5_000,
		BrokerFastFailureEnable:         true,
		WaitTimeMillsInSendQueue:        200,
		WaitTimeMillsInPullQueue:        5_000,
		WaitTimeMillsInHeartbeatQueue:   31_000,
		WaitTimeMillsInTransactionQueue: 3_000,
		ConsumerFallbehindThreshold:     16 << 30,
		StoreReplyMessageEnable:         true,
		ConfigBlackList:                 "configBlackList;brokerConfigPath",
		AclPlainFile:                    "conf/plain_acl.yml",

		TransactionTimeOut:       6_000,
		TransactionCheckMax:      15,
		TransactionCheckInterval: 60_000,

		RecallMessageEnable: true,

		ExpectConsumerNumUseFilter: 32,
		MaxErrorRateOfBloomFilter:  20,
		FilterDataCleanTimeSpan:    24 * 3600 * 1000,

		QueryMessageThreadPoolNums:           8 + cores,
		AdminBrokerThreadPoolNums:            16,
		ClientManageThreadPoolNums:           32,
		QueryThreadPoolQueueCapacity:         20_000,
		ClientManagerThreadPoolQueueCapacity: 1_000_000,

		SendMessageThreadPoolNums:              min(cores, 4),
		PutMessageFutureThreadPoolNums:         min(cores, 4),
		PullMessageThreadPoolNums:              16 + 2*cores,
		ProcessReplyMessageThreadPoolNums:      16 + 2*cores,
		ConsumerManageThreadPoolNums:           32,
		HeartbeatThreadPoolNums:                min(32, cores),
		EndTransactionThreadPoolNums:           max(8+2*cores, 4*min(cores, 4)),
		FlushConsumerOffsetHistoryInterval:     60_000,
		SendThreadPoolQueueCapacity:            10_000,
		PutThreadPoolQueueCapacity:             10_000,
		PullThreadPoolQueueCapacity:            100_000,
		ReplyThreadPoolQueueCapacity:           10_000,
		ConsumerManagerThreadPoolQueueCapacity: 1_000_000,
		HeartbeatThreadPoolQueueCapacity:       50_000,
		EndTransactionPoolQueueCapacity:        100_000,
		CommercialEnable:                       true,
		CommercialTimerCount:                   1,
		CommercialTransCount:                   1,
		CommercialBigCount:                     1,
		CommercialBaseCount:                    1,
		TransferMsgByHeap:                      true,
		MaxDelayTime:                           40,
		EnableDetailStat:                       true,

		ServerWorkerThreads:                8,
		ServerSelectorThreads:              3,
		ServerOnewaySemaphoreValue:         256,
		ServerAsyncSemaphoreValue:          64,
		ServerPooledByteBufAllocatorEnable: true,
		ClientWorkerThreads:                4,
		ClientCallbackExecutorThreads:      cores,
		ClientOnewaySemaphoreValue:         65_535,
		ClientAsyncSemaphoreValue:          65_535,
		ChannelNotActiveInterval:           60_000,
	}
	c.ListenPort = 10911
	return c
}

// registerPeriod is the time between two registrations, in the official bounds.
func (c *Config) registerPeriod() time.Duration {
	return time.Duration(max(10_000, min(c.RegisterNameServerPeriod, 60_000))) * time.Millisecond
}

// saveOffsetsPeriod is the time between two writes of consumer offsets.
func (c *Config) saveOffsetsPeriod() time.Duration {
	return compat.Millis(max(100, c.FlushConsumerOffsetInterval))
}

// configDir is the folder of the config files.
func (c *Config) configDir() string { return filepath.Join(c.StorePathRootDir, "config") }
