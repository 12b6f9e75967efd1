package message

// Names of reserved properties (MessageConst of 4.9.8).
const (
	PropertyKeys                           = "KEYS"
	PropertyTags                           = "TAGS"
	PropertyWaitStoreMsgOK                 = "WAIT"
	PropertyDelayTimeLevel                 = "DELAY"
	PropertyRetryTopic                     = "RETRY_TOPIC"
	PropertyRealTopic                      = "REAL_TOPIC"
	PropertyRealQueueId                    = "REAL_QID"
	PropertyTransactionPrepared            = "TRAN_MSG"
	PropertyProducerGroup                  = "PGROUP"
	PropertyMinOffset                      = "MIN_OFFSET"
	PropertyMaxOffset                      = "MAX_OFFSET"
	PropertyBuyerId                        = "BUYER_ID"
	PropertyOriginMessageId                = "ORIGIN_MESSAGE_ID"
	PropertyTransferFlag                   = "TRANSFER_FLAG"
	PropertyShardingKey                    = "__SHARDINGKEY" // of FIFO messages of 5.x clients
	PropertyCorrectionFlag                 = "CORRECTION_FLAG"
	PropertyMQ2Flag                        = "MQ2_FLAG"
	PropertyReconsumeTime                  = "RECONSUME_TIME"
	PropertyMsgRegion                      = "MSG_REGION"
	PropertyTraceSwitch                    = "TRACE_ON"
	PropertyUniqKey                        = "UNIQ_KEY"
	PropertyMaxReconsumeTimes              = "MAX_RECONSUME_TIMES"
	PropertyConsumeStartTimestamp          = "CONSUME_START_TIME"
	PropertyTransactionPreparedQueueOffset = "TRAN_PREPARED_QUEUE_OFFSET"
	PropertyTransactionCheckTimes          = "TRANSACTION_CHECK_TIMES"
	PropertyCheckImmunityTimeInSeconds     = "CHECK_IMMUNITY_TIME_IN_SECONDS"
	PropertyInstanceId                     = "INSTANCE_ID"
	PropertyCorrelationId                  = "CORRELATION_ID"
	PropertyMessageReplyToClient           = "REPLY_TO_CLIENT"
	PropertyMessageTTL                     = "TTL"
	PropertyReplyMessageArriveTime         = "ARRIVE_TIME"
	PropertyPushReplyTime                  = "PUSH_REPLY_TIME"
	PropertyCluster                        = "CLUSTER"
	PropertyMessageType                    = "MSG_TYPE"
	PropertyInnerMultiDispatch             = "INNER_MULTI_DISPATCH"
	PropertyInnerMultiQueueOffset          = "INNER_MULTI_QUEUE_OFFSET"
	PropertyPopCk                          = "POP_CK"       // receipt handle of a popped message
	PropertyFirstPopTime                   = "1ST_POP_TIME" // ms, when it was popped first
)

// Names of reserved properties of timer messages (MessageConst and TimerMessageStore of 5.3.3), and that of older clients of a
// cloud service.
const (
	PropertyTimerDeliverMs   = "TIMER_DELIVER_MS" // ms since 1970
	PropertyTimerDelaySec    = "TIMER_DELAY_SEC"
	PropertyTimerDelayMs     = "TIMER_DELAY_MS"
	PropertyStartDeliverTime = "__STARTDELIVERTIME" // ms since 1970
	PropertyTimerOutMs       = "TIMER_OUT_MS"       // the broker's: when the message is due, ms since 1970
	PropertyTimerEnqueueMs   = "TIMER_ENQUEUE_MS"
	PropertyTimerDequeueMs   = "TIMER_DEQUEUE_MS"
	PropertyTimerRollTimes   = "TIMER_ROLL_TIMES"
	PropertyTimerDelUniqKey  = "TIMER_DEL_UNIQKEY" // topic+uniqKey of the message that this one recalls
	PropertyBornTimestamp    = "BORN_TIMESTAMP"
)

// KeySeparator stands between the keys in PropertyKeys; ReplyMessageFlag is PropertyMessageType of a reply.
const (
	KeySeparator     = " "
	ReplyMessageFlag = "reply"
)
