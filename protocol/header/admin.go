package header

// GetBrokerConfigResponse is the header of answers to GET_BROKER_CONFIG.
type GetBrokerConfigResponse struct {
	Version string // DataVersion JSON string
}

// ViewBrokerStatsDataRequest is the header of requests VIEW_BROKER_STATS_DATA.
type ViewBrokerStatsDataRequest struct {
	StatsName string `rmq:",required"`
	StatsKey  string `rmq:",required"`
}
