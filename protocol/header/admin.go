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

// Empty is a header without fields: an answer with it carries an empty extFields, as those official
// answers do that have a header class without fields (35, 38, 15, 21, 37).
type Empty struct{}
