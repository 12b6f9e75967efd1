package broker

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"rocketd/broker/filter"
	"rocketd/compat"
)

// keyRanges are the values that numeric keys may be given on a running broker. Keys that are not here take any
// that are not negative: times, sizes and counts. A configuration file may hold others at the start, as with the
// official broker, which checks nothing anywhere; the log tells of them.
var keyRanges = map[string]struct{ least, most int64 }{
	"brokerPermission":              {0, 7},
	"brokerId":                      {0, math.MaxInt64},
	"diskMaxUsedSpaceRatio":         {0, 100},
	"diskSpaceWarningLevelRatio":    {1, 100},
	"diskSpaceCleanForciblyRatio":   {1, 100},
	"accessMessageInMemoryMaxRatio": {0, 100},
	"maxErrorRateOfBloomFilter":     {1, 99},
	"expectConsumerNumUseFilter":    {1, filter.MaxConsumers},
	"maxMessageSize":                {1, math.MaxInt32 - 64<<10},
	"maxMsgsNumBatch":               {1, math.MaxInt32},
	"defaultQueryMaxNum":            {1, math.MaxInt32},
	"registerNameServerPeriod":      {1, math.MaxInt32},
	"registerBrokerTimeoutMills":    {1, math.MaxInt32},
	"shortPollingTimeMills":         {1, math.MaxInt32},
	"syncFlushTimeout":              {1, math.MaxInt32},
	"osPageCacheBusyTimeOutMills":   {1, math.MaxInt32},
	"cleanResourceInterval":         {1, math.MaxInt32},
	"flushIntervalCommitLog":        {1, math.MaxInt32},
	"flushIntervalConsumeQueue":     {1, math.MaxInt32},
	"popFromRetryProbability":       {0, 100},
	"defaultPopShareQueueNum":       {-1, math.MaxInt32},
	"transactionTimeOut":            {1, math.MaxInt64},
	"transactionCheckMax":           {1, math.MaxInt32},
	"transactionCheckInterval":      {1, math.MaxInt64},

	"maxTransferBytesOnMessageInMemory": {1, math.MaxInt32},
	"maxTransferCountOnMessageInMemory": {1, math.MaxInt32},
	"maxTransferBytesOnMessageInDisk":   {1, math.MaxInt32},
	"maxTransferCountOnMessageInDisk":   {1, math.MaxInt32},
}

// checkValues says what is wrong with new values that have the type of their key. Types are what defaults show.
func checkValues(props *compat.Properties) error { return errors.Join(checkEach(props)...) }

// checkEach is checkValues with an error for each value.
func checkEach(props *compat.Properties) []error {
	defaults := DefaultConfig("")
	usual := make(map[string]string)
	for _, kv := range compat.PropertiesOf(defaults) {
		usual[kv.Key] = kv.Value
	}
	var all []error
	for _, kv := range props.All() {
		value := strings.TrimSpace(kv.Value)
		_, err := strconv.ParseInt(usual[kv.Key], 10, 64)
		switch {
		case kv.Key == "deleteWhen":
			if err := checkHours(value); err != nil {
				all = append(all, fmt.Errorf("deleteWhen=%s: %w", kv.Value, err))
			}
		case err == nil: // a number
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				continue // a text whose default looks like a number
			}
			r, ok := keyRanges[kv.Key]
			if !ok {
				r.most = math.MaxInt64
			}
			if n < r.least || n > r.most {
				all = append(all, fmt.Errorf("%s=%s: must be %s", kv.Key, kv.Value, rangeText(r.least, r.most)))
			}
		}
	}
	return all
}

func rangeText(least, most int64) string {
	if most == math.MaxInt64 {
		return fmt.Sprintf("%d or more", least)
	}
	return fmt.Sprintf("from %d to %d", least, most)
}

// checkHours wants a list of hours such as 04 or 04;16.
func checkHours(list string) error {
	for hour := range strings.SplitSeq(strings.TrimSuffix(list, ";"), ";") {
		hour = strings.TrimSpace(hour)
		if n, err := strconv.Atoi(hour); err != nil || n < 0 || n > 23 || len(hour) > 2 {
			return errors.New("must be hours from 00 to 23, such as 04 or 04;16; with none of these old files go only when the disk fills up")
		}
	}
	return nil
}
