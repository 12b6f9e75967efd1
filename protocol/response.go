package protocol

import "strconv"

// ResponseCode is the outcome of a request (the "code" of a command whose response bit is set).
// The values are those of the official ResponseCode; spec: response codes of 4.9.8.
type ResponseCode int32

// The response codes of 4.9.8.
const (
	Success                            ResponseCode = 0
	SystemError                        ResponseCode = 1
	SystemBusy                         ResponseCode = 2
	RequestCodeNotSupported            ResponseCode = 3
	TransactionFailed                  ResponseCode = 4
	FlushDiskTimeout                   ResponseCode = 10
	SlaveNotAvailable                  ResponseCode = 11
	FlushSlaveTimeout                  ResponseCode = 12
	MessageIllegal                     ResponseCode = 13
	ServiceNotAvailable                ResponseCode = 14
	VersionNotSupported                ResponseCode = 15
	NoPermission                       ResponseCode = 16
	TopicNotExist                      ResponseCode = 17
	TopicExistAlready                  ResponseCode = 18
	PullNotFound                       ResponseCode = 19
	PullRetryImmediately               ResponseCode = 20
	PullOffsetMoved                    ResponseCode = 21
	QueryNotFound                      ResponseCode = 22
	SubscriptionParseFailed            ResponseCode = 23
	SubscriptionNotExist               ResponseCode = 24
	SubscriptionNotLatest              ResponseCode = 25
	SubscriptionGroupNotExist          ResponseCode = 26
	FilterDataNotExist                 ResponseCode = 27
	FilterDataNotLatest                ResponseCode = 28
	TransactionShouldCommit            ResponseCode = 200
	TransactionShouldRollback          ResponseCode = 201
	TransactionStateUnknow             ResponseCode = 202
	TransactionStateGroupWrong         ResponseCode = 203
	NoBuyerId                          ResponseCode = 204
	NotInCurrentUnit                   ResponseCode = 205
	ConsumerNotOnline                  ResponseCode = 206
	ConsumeMsgTimeout                  ResponseCode = 207
	NoMessage                          ResponseCode = 208
	UpdateAndCreateAclConfigFailed     ResponseCode = 209
	DeleteAclConfigFailed              ResponseCode = 210
	UpdateGlobalWhiteAddrsConfigFailed ResponseCode = 211
	FlowControl                        ResponseCode = 215

	// Codes of 5.x that answer its requests only. 209 and 210 mean other things in answers to requests of 4.9: a client
	// tells them apart by what it asked.
	InvalidParameter ResponseCode = 29
	PollingFull      ResponseCode = 209
	PollingTimeout   ResponseCode = 210
)

// IllegalOperation is the code of 5.x for a message that can't be recalled.
const IllegalOperation ResponseCode = 604

var responseNames = map[ResponseCode]string{
	Success:                            "SUCCESS",
	SystemError:                        "SYSTEM_ERROR",
	SystemBusy:                         "SYSTEM_BUSY",
	RequestCodeNotSupported:            "REQUEST_CODE_NOT_SUPPORTED",
	TransactionFailed:                  "TRANSACTION_FAILED",
	FlushDiskTimeout:                   "FLUSH_DISK_TIMEOUT",
	SlaveNotAvailable:                  "SLAVE_NOT_AVAILABLE",
	FlushSlaveTimeout:                  "FLUSH_SLAVE_TIMEOUT",
	MessageIllegal:                     "MESSAGE_ILLEGAL",
	ServiceNotAvailable:                "SERVICE_NOT_AVAILABLE",
	VersionNotSupported:                "VERSION_NOT_SUPPORTED",
	NoPermission:                       "NO_PERMISSION",
	TopicNotExist:                      "TOPIC_NOT_EXIST",
	TopicExistAlready:                  "TOPIC_EXIST_ALREADY",
	PullNotFound:                       "PULL_NOT_FOUND",
	PullRetryImmediately:               "PULL_RETRY_IMMEDIATELY",
	PullOffsetMoved:                    "PULL_OFFSET_MOVED",
	QueryNotFound:                      "QUERY_NOT_FOUND",
	SubscriptionParseFailed:            "SUBSCRIPTION_PARSE_FAILED",
	SubscriptionNotExist:               "SUBSCRIPTION_NOT_EXIST",
	SubscriptionNotLatest:              "SUBSCRIPTION_NOT_LATEST",
	SubscriptionGroupNotExist:          "SUBSCRIPTION_GROUP_NOT_EXIST",
	FilterDataNotExist:                 "FILTER_DATA_NOT_EXIST",
	FilterDataNotLatest:                "FILTER_DATA_NOT_LATEST",
	TransactionShouldCommit:            "TRANSACTION_SHOULD_COMMIT",
	TransactionShouldRollback:          "TRANSACTION_SHOULD_ROLLBACK",
	TransactionStateUnknow:             "TRANSACTION_STATE_UNKNOW",
	TransactionStateGroupWrong:         "TRANSACTION_STATE_GROUP_WRONG",
	NoBuyerId:                          "NO_BUYER_ID",
	NotInCurrentUnit:                   "NOT_IN_CURRENT_UNIT",
	ConsumerNotOnline:                  "CONSUMER_NOT_ONLINE",
	ConsumeMsgTimeout:                  "CONSUME_MSG_TIMEOUT",
	NoMessage:                          "NO_MESSAGE",
	InvalidParameter:                   "INVALID_PARAMETER",
	UpdateAndCreateAclConfigFailed:     "UPDATE_AND_CREATE_ACL_CONFIG_FAILED",
	DeleteAclConfigFailed:              "DELETE_ACL_CONFIG_FAILED",
	UpdateGlobalWhiteAddrsConfigFailed: "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED",
	FlowControl:                        "FLOW_CONTROL",
	IllegalOperation:                   "ILLEGAL_OPERATION",
}

// String returns the official name of the code, or its number when it is unknown.
func (c ResponseCode) String() string {
	if n, ok := responseNames[c]; ok {
		return n
	}
	return strconv.Itoa(int(c))
}
