package body

// BrokerStatsItem is a sum and its rates over one period.
type BrokerStatsItem struct {
	Avgpt float64 // average per call
	Sum   int64
	Tps   float64
}

// BrokerStatsData answers VIEW_BROKER_STATS_DATA.
type BrokerStatsData struct {
	StatsDay    BrokerStatsItem
	StatsHour   BrokerStatsItem
	StatsMinute BrokerStatsItem
}
