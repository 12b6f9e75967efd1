package broker

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
	"rocketd/remoting/acl/admin"
)

// settings is what a running broker knows of its configuration beside the values in force.
type settings struct {
	mu struct { // held during a change of the configuration
		sync.Mutex
		version body.DataVersion
		next    map[string]string // updated keys that count from the next start on
	}
}

// startKeys are keys that are only heeded at start: who the broker is, where its files lie and what form they
// have. An update of one is written down and shown, and changes nothing before the next start.
var startKeys = []string{
	"listenPort", "bindAddress", "brokerName", "brokerClusterName", "brokerId", "brokerIP1", "brokerIP2", "brokerRole",
	"haListenPort", "storePathRootDir", "storePathCommitLog", "storePathDLedgerCommitLog", "readOnlyCommitLogStorePaths",
	"mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue", "maxHashSlotNum", "maxIndexNum", "enableConsumeQueueExt",
	"mappedFileSizeConsumeQueueExt", "enableLmq", "enableMultiDispatch", "expectConsumerNumUseFilter", "maxErrorRateOfBloomFilter",
	"flushDiskType", "messageDelayLevel", "traceTopicEnable", "msgTraceTopicName",
	"flushConsumerOffsetInterval", "flushDelayOffsetInterval", "frameMaxLength", "configBlackList", "rocketmqHome", "aclEnable", "aclPlainFile", "adminAccountsOnly",

	"defaultTopicQueueNums", "clusterTopicEnable", "brokerTopicEnable",
	"queryMessageThreadPoolNums", "adminBrokerThreadPoolNums", "clientManageThreadPoolNums",
	"queryThreadPoolQueueCapacity", "clientManagerThreadPoolQueueCapacity",
	"serverChannelMaxIdleTimeSeconds", "serverSocketBacklog", "unreadBytesBusy", "unreadBytesClose",
	"pendingRequestsBusy", "pendingRequestsClose", "queuedBytesBusy", "queuedBytesClose", "maxConnections", "maxBufferedBytes", "frameTimeoutMillis",
	"connectTimeoutMillis", "clientChannelMaxIdleTimeSeconds", "clientCloseSocketIfTimeout", "useTLS", "tlsHandshakeTimeoutMillis", "maxTlsHandshakes",
}

// alwaysBlack are keys that no request may change, whatever configBlackList says: where files are written and read, what
// keeps strangers out, and the bounds of requests themselves. The official broker takes them, and writes there, or lets
// everybody in, from its next start on (compat).
var alwaysBlack = append([]string{
	"aclEnable", "useTLS", "bindAddress",
	"brokerConfigPath", "rocketmqHome", "configBlackList", "aclPlainFile", "namesrvAccountFile",
	"storePathRootDir", "storePathCommitLog", "storePathDLedgerCommitLog", "readOnlyCommitLogStorePaths",
}, admin.Keys...)

// getBrokerConfig (26) is every key with its value, one a line; unknown keys of the configuration file too.
func (b *Broker) getBrokerConfig(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	b.settings.mu.Lock()
	defer b.settings.mu.Unlock()
	var text bytes.Buffer
	for _, kv := range b.config().Items() {
		if next, ok := b.settings.mu.next[kv.Key]; ok {
			kv.Value = next
		}
		if kv.Value == "" && kv.Key != "messageStorePlugIn" {
			continue // Java's null; the plug-in's default alone is an empty text
		}
		text.WriteString(kv.Key + "=" + kv.Value + "\n")
	}
	version, err := compat.Marshal(&b.settings.mu.version)
	if err != nil {
		return nil, err
	}
	answer := c.Success(&header.GetBrokerConfigResponse{Version: string(version)})
	answer.Body = text.Bytes()
	return answer, nil
}

// updateBrokerConfig (25) changes keys on the running broker and in its configuration file. Unknown keys are
// ignored unless the file has them; a value that does not fit its key, or asks for what is not served, changes nothing
// and is refused with the key and what is wrong, where the official broker says yes and ignores it.
func (b *Broker) updateBrokerConfig(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	if len(c.Command().Body) == 0 {
		return c.Success(nil), nil
	}
	props, err := compat.ParseProperties(c.Command().Body)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "string2Properties error")
	}
	props.ForgetLines()
	b.settings.mu.Lock()
	defer b.settings.mu.Unlock()
	black := append(slices.Clone(alwaysBlack), strings.Split(b.config().ConfigBlackList, ";")...)
	for _, key := range props.Keys() {
		if slices.Contains(black, key) || remoting.IsTLSKey(key) { // compat: these are no keys of the official broker
			return nil, protocol.Errorf(protocol.NoPermission, "Can not update config in black list.")
		}
	}
	if err := b.changeLocked(props, c.Conn().RemoteAddr().String(), b.writeConfig); err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "the configuration is left as it was: %v", err)
	}
	return c.Success(nil), nil
}
