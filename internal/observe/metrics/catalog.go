package metrics

// Kind is the Prometheus type of a metric.
type Kind string

// The kinds in use.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Info describes one exported metric.
type Info struct {
	Name   string
	Kind   Kind
	Labels []string
	Help   string
}

// The limiter: decisions and limits.
var (
	decisionsInfo = Info{
		"oauth_ratelimit_decisions_total", Counter,
		[]string{"client_id", "grant_type", "outcome"},
		"Rate limit decisions. Outcomes: allowed, denied, would_deny (dry-run), reused (over the limit, answered with the last token), would_reuse (dry-run), delayed (over the limit, admitted after a wait), would_delay (dry-run), banned, would_ban (dry-run), trusted. The candidate_ outcomes (candidate_would_deny, _reuse, _delay, _ban) are counted in addition to one of these.",
	}
	outageInfo = Info{
		"oauth_ratelimit_outage", Gauge, nil,
		"1 while the database takes no counts and limits follow their on_outage.",
	}
	outageDecisionsInfo = Info{
		"oauth_ratelimit_outage_decisions_total", Counter,
		[]string{"client_id", "outcome"},
		"Decisions by a limit's on_outage (share or deny) while counts cannot be shared: allowed, denied, would_deny (dry-run). The last two include requests that got the last token again.",
	}
	leaseWaitInfo = Info{
		"oauth_ratelimit_lease_wait_seconds", Histogram,
		[]string{"outcome"},
		"How long requests waited for permits of a strict limit or the first read of a key, if they did: allowed, or denied (no permit in time, over the limit, or cancelled).",
	}
	delaysInfo = Info{
		"oauth_ratelimit_delay_seconds", Histogram, nil,
		"How long requests over a limit waited (max_wait) before they were admitted.",
	}
	waitingInfo = Info{
		"oauth_ratelimit_waiting", Gauge, nil,
		"Requests over a limit that are waiting (max_wait).",
	}
	softWarningsInfo = Info{
		"oauth_ratelimit_soft_warnings_total", Counter,
		[]string{"client_id", "grant_type"},
		"Requests admitted above the soft_ratio of a limit.",
	}
	issuedInfo = Info{
		"oauth_tokens_issued_total", Counter,
		[]string{"client_id", "grant_type"},
		"Access tokens issued, without tokens that were returned again (over_limit: reuse).",
	}
	wastedInfo = Info{
		"oauth_tokens_wasted_total", Counter,
		[]string{"client_id", "grant_type"},
		"Access tokens issued while an equal one (same client, credential, user and scopes) had more than half of its life left. With refresh_token: early refreshes.",
	}
	bansInfo = Info{
		"oauth_ratelimit_bans_total", Counter,
		[]string{"client_id", "outcome"},
		"Bans of the client or one of its users that began. Outcomes: banned, counted by the instance that stored it; would_ban (dry-run), counted by each instance.",
	}
	bannedInfo = Info{
		"oauth_ratelimit_banned", Gauge, nil,
		"Clients and users that are banned under the policies in force. Every instance has the same number.",
	}
	longestBanInfo = Info{
		"oauth_ratelimit_ban_longest_seconds", Gauge, nil,
		"Total length of the longest ban in force.",
	}
	bansWaitingInfo = Info{
		"oauth_ratelimit_bans_waiting", Gauge, nil,
		"Bans of this instance that are not stored yet, so other instances do not apply them.",
	}
	usageInfo = Info{
		"oauth_ratelimit_usage_ratio", Gauge,
		[]string{"client_id"},
		"Highest share of a limit in use by any key of the client in the last 30 to 60 seconds; 1 is the limit.",
	}
	limitInfo = Info{
		"oauth_ratelimit_limit", Gauge,
		[]string{"client_id", "kind", "limit", "grants"},
		"Limit in force: requests per window. Kind: user (each user of the client), client (its client_credentials), total (all together) or source (each address). Grants: the grants that a user limit counts; empty: all.",
	}
	limitWindowInfo = Info{
		"oauth_ratelimit_limit_window_seconds", Gauge,
		[]string{"client_id", "kind", "limit", "grants"},
		"Window of the limit in force.",
	}
	defaultLimitInfo = Info{
		"oauth_ratelimit_default_limit", Gauge,
		[]string{"kind", "limit", "grants"},
		"Limit of clients without a limit of their own: requests per window.",
	}
	defaultWindowInfo = Info{
		"oauth_ratelimit_default_limit_window_seconds", Gauge,
		[]string{"kind", "limit", "grants"},
		"Window of the default limit.",
	}
	trustedInfo = Info{
		"oauth_ratelimit_trusted", Gauge,
		[]string{"client_id"},
		"1 for a trusted client, which is never denied.",
	}
	modeInfo = Info{
		"oauth_ratelimit_mode", Gauge,
		[]string{"client_id", "mode"},
		"1 for the mode that applies to the client: enforce, dry_run or off.",
	}
	countersInfo = Info{
		"oauth_ratelimit_counters", Gauge, nil,
		"Counters (client and user) in memory.",
	}
	countersMaxInfo = Info{
		"oauth_ratelimit_counters_max", Gauge, nil,
		"Maximum of counters in memory.",
	}
	evictionsInfo = Info{
		"oauth_ratelimit_evictions_total", Counter, nil,
		"Counters dropped before they were idle, because memory was full.",
	}
	overflowInfo = Info{
		"oauth_ratelimit_overflow_decisions_total", Counter, nil,
		"Decisions on a counter that several keys share, because memory was full of keys at their limits.",
	}
	labelledInfo = Info{
		"oauth_metrics_labelled_clients", Gauge, nil,
		"Clients with a label of their own; all others are counted as \"other\".",
	}
)

// The token endpoint and HTTP.
var (
	tokensInfo = Info{
		"oauth_token_responses_total", Counter,
		[]string{"grant_type", "error"},
		"Responses of the token endpoint. Error: none, rate_limited (429), overloaded (503 because of overload), or the error parameter of the response (RFC 6749 section 5.2).",
	}
	requestsInfo = Info{
		"oauth_http_request_duration_seconds", Histogram,
		[]string{"route", "method", "code"},
		"Time from the request's headers to the end of the response.",
	}
	inFlightInfo = Info{
		"oauth_http_requests_in_flight", Gauge, nil,
		"Requests in progress.",
	}
	hashesInfo = Info{
		"oauth_password_hashes_total", Counter,
		[]string{"place"},
		"Passwords hashed. Place: process (a separate one with the lowest priority) or server (if such processes are off or one failed).",
	}
	dbCallsInfo = Info{
		"oauth_http_request_db_calls", Histogram,
		[]string{"route"},
		"Store calls per request.",
	}
)

// The store.
var (
	storeInfo = Info{
		"oauth_store_operation_duration_seconds", Histogram,
		[]string{"operation"},
		"Duration of store operations, including failed ones.",
	}
	storeErrorsInfo = Info{
		"oauth_store_errors_total", Counter,
		[]string{"operation"},
		"Failed store operations. Not found, a conflict and a lost claim are not failures. Operation decode_TABLE: a record of the table cannot be read.",
	}
)

// The syncer, which shares counts between instances.
var (
	gAgeInfo = Info{
		"oauth_sync_g_age_seconds", Gauge, nil,
		"Greatest recent age of a g: how long requests of one key were decided without reading the database.",
	}
	lateInfo = Info{
		"oauth_sync_late_seconds", Gauge, nil,
		"How long the oldest due exchange has been waiting.",
	}
	unconfirmedInfo = Info{
		"oauth_sync_unconfirmed_seconds", Gauge, nil,
		"Age of the oldest write that is not confirmed.",
	}
	degradedInfo = Info{
		"oauth_sync_degraded_seconds", Gauge, nil,
		"How long exchanges of counts with the database have been failing; 0 if they work.",
	}
	dirtyInfo = Info{
		"oauth_sync_dirty_keys", Gauge, nil,
		"Keys waiting for an exchange with the database.",
	}
	dueInfo = Info{
		"oauth_sync_due_keys", Gauge, nil,
		"Keys with an exchange that is due, a part of oauth_sync_dirty_keys.",
	}
	instancesInfo = Info{
		"oauth_sync_instances", Gauge, nil,
		"Live instances that this one knows, including itself.",
	}
	commandsInfo = Info{
		"oauth_sync_commands_total", Counter,
		[]string{"command"},
		"Commands sent to the database: write (a bulk), read (documents), clock, and beat (the heartbeat of this instance).",
	}
	commandFailsInfo = Info{
		"oauth_sync_command_failures_total", Counter,
		[]string{"command"},
		"Commands that failed as a whole.",
	}
	bulkSizeInfo = Info{
		"oauth_sync_bulk_size", Histogram,
		[]string{"command"},
		"Keys per write or read command.",
	}
	bulkDurationInfo = Info{
		"oauth_sync_bulk_duration_seconds", Histogram,
		[]string{"command"},
		"Duration of write and read commands.",
	}
	writesInfo = Info{
		"oauth_sync_writes_total", Counter,
		[]string{"outcome"},
		"Writes of a key: applied, fallback (applied without compare-and-swap), conflict, unknown (no answer; resolved later), rejected.",
	}
	expiredInfo = Info{
		"oauth_sync_expired_counts_total", Counter, nil,
		"Counts that left their window before they could be written.",
	}
	foreignInfo = Info{
		"oauth_sync_foreign_documents_total", Counter, nil,
		"Counter documents with invalid content, in whole or in part.",
	}
	driftInfo = Info{
		"oauth_sync_drift_total", Counter, nil,
		"Times that a document had less than this instance had written; must stay 0.",
	}
	clonesInfo = Info{
		"oauth_sync_clones_total", Counter, nil,
		"Times that this instance took a new ID because a copy of its process runs under the old one.",
	}
	syncPanicsInfo = Info{
		"oauth_sync_panics_total", Counter, nil,
		"Panics of the syncer; each is logged, and the syncer continues.",
	}
	leftoverInfo = Info{
		"oauth_sync_final_flush_leftover", Gauge, nil,
		"Counts that could not be written before the stop.",
	}
	clockOffsetInfo = Info{
		"oauth_clock_offset_seconds", Gauge,
		[]string{"clock"},
		"How far a clock is ahead of the process time that counting uses. Clock: wall (this machine) or store (the database; 0 while it cannot be read).",
	}
)

// The process and its configuration.
var (
	configRevisionInfo = Info{
		"oauth_config_revision", Gauge,
		[]string{"config"},
		"Revision in use of the clients or policies in the store. Compare it between instances; the number itself has no meaning.",
	}
	configAgeInfo = Info{
		"oauth_config_age_seconds", Gauge,
		[]string{"config"},
		"Time since the clients or policies were last known to be current.",
	}
	unreadableInfo = Info{
		"oauth_clients_unreadable", Gauge, nil,
		"Clients that are not served, because their record cannot be read or is not valid.",
	}
	unregisteredInfo = Info{
		"oauth_policies_unregistered", Gauge, nil,
		"Policies in the configuration file for unregistered clients: deleted, not registered yet, or misspelt.",
	}
	fileRefusedInfo = Info{
		"oauth_config_reload_failed", Gauge, nil,
		"1 while the changed configuration file cannot be read or is not valid; the last good one stays in use.",
	}
	fileRestartInfo = Info{
		"oauth_config_restart_needed", Gauge, nil,
		"Fields of the configuration file that changed since the start and need a restart.",
	}
	fileLimitsInfo = Info{
		"oauth_config_limits_hash", Gauge, nil,
		"Hash of the limits in the configuration file in use. Different hashes mean that instances have different limits.",
	}
	panicsInfo = Info{
		"oauth_loop_panics_total", Counter,
		[]string{"loop"},
		"Panics of background loops, which are restarted. A repeated panic is logged once an hour.",
	}
	buildInfo = Info{
		"oauth_build_info", Gauge,
		[]string{"version", "revision", "goversion"},
		"Always 1; the labels have the version.",
	}
)

// Section is a group of metrics that answer one kind of question.
type Section struct {
	Title   string
	Metrics []Info
}

// Sections lists all metrics of this program, in the order of docs/metrics.md. The go_* and
// process_* metrics of client_golang are exported too.
func Sections() []Section {
	return []Section{
		{"Rate limits", []Info{
			decisionsInfo, delaysInfo, waitingInfo, outageInfo, outageDecisionsInfo, leaseWaitInfo, softWarningsInfo, issuedInfo, wastedInfo, bansInfo, bannedInfo, longestBanInfo, bansWaitingInfo, usageInfo, limitInfo, limitWindowInfo,
			defaultLimitInfo, defaultWindowInfo, trustedInfo, modeInfo,
			countersInfo, countersMaxInfo, evictionsInfo, overflowInfo, labelledInfo,
		}},
		{"Requests and tokens", []Info{tokensInfo, requestsInfo, inFlightInfo, dbCallsInfo, hashesInfo}},
		{"Overload", []Info{
			overloadRequestsInfo, overloadModeInfo, overloadWaitInfo, overloadRefusedInfo, overloadUpToInfo, overloadUselessInfo, overloadInFlightInfo,
			storeQueueLimitInfo, storeQueueInFlightInfo, storeQueueWaitingInfo, storeQueueRequestsInfo,
		}},
		{"Gateway", []Info{
			gatewayRequestsInfo, gatewayDurationInfo, gatewayUpstreamInfo, gatewayUnknownInfo, gatewayLateInfo, gatewayDefectsInfo, gatewayUnderWayInfo, gatewaySubjectsInfo,
			gatewayReadsInfo, gatewayWritesInfo, gatewayWritesWaitingInfo,
		}},
		{"Store", []Info{storeInfo, storeErrorsInfo}},
		{"Sharing counts between instances", []Info{
			gAgeInfo, lateInfo, unconfirmedInfo, degradedInfo, dirtyInfo, dueInfo, instancesInfo,
			commandsInfo, commandFailsInfo, bulkSizeInfo, bulkDurationInfo, writesInfo,
			expiredInfo, foreignInfo, driftInfo, clonesInfo, syncPanicsInfo, leftoverInfo, clockOffsetInfo,
		}},
		{"Process and configuration", []Info{configRevisionInfo, configAgeInfo, unreadableInfo, unregisteredInfo, fileRefusedInfo, fileRestartInfo, fileLimitsInfo, connectionsInfo, connectionsMaxInfo, streamsInfo, connectionsExcessInfo, panicsInfo, buildInfo}},
	}
}

// Catalog lists the metrics of all sections.
func Catalog() []Info {
	var all []Info
	for _, s := range Sections() {
		all = append(all, s.Metrics...)
	}
	return all
}
