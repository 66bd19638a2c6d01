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
		"Rate limit decisions. Outcomes: allowed, denied, would_deny (dry-run), reused (over the limit, answered with the last token), would_reuse (dry-run), delayed (over the limit, admitted at its turn), would_delay (dry-run), banned (by a ban), would_ban (dry-run), trusted. candidate_would_deny, candidate_would_reuse, candidate_would_delay and candidate_would_ban are counted beside one of the others.",
	}
	outageInfo = Info{
		"oauth_ratelimit_outage", Gauge, nil,
		"1 while the database does not take the counts, so that limits are decided by their on_outage.",
	}
	outageDecisionsInfo = Info{
		"oauth_ratelimit_outage_decisions_total", Counter,
		[]string{"client_id", "outcome"},
		"Decisions of those that a limit's on_outage made, share or deny, because the count could not be shared: allowed, denied, would_deny (dry-run); the last two also where the last token was the answer.",
	}
	leaseWaitInfo = Info{
		"oauth_ratelimit_lease_wait_seconds", Histogram,
		[]string{"outcome"},
		"Time that requests waited for permits of a strict limit, of those that waited: allowed, or denied (no permits in time, over the limit meanwhile, or cancelled). Native and classic buckets.",
	}
	delaysInfo = Info{
		"oauth_ratelimit_delay_seconds", Histogram, nil,
		"How long requests over a limit waited for their turn (max_wait), those that got it. Native and classic buckets.",
	}
	waitingInfo = Info{
		"oauth_ratelimit_waiting", Gauge, nil,
		"Requests over a limit that wait for their turn.",
	}
	softWarningsInfo = Info{
		"oauth_ratelimit_soft_warnings_total", Counter,
		[]string{"client_id", "grant_type"},
		"Requests let through above the soft ratio of a limit.",
	}
	issuedInfo = Info{
		"oauth_tokens_issued_total", Counter,
		[]string{"client_id", "grant_type"},
		"Access tokens issued. Those that are handed out again (over_limit: reuse) are none of them.",
	}
	wastedInfo = Info{
		"oauth_tokens_wasted_total", Counter,
		[]string{"client_id", "grant_type"},
		"Access tokens issued while an equal one, for the same client, credential, user and scope set, had more than half of its life left. With refresh_token: early refreshes.",
	}
	bansInfo = Info{
		"oauth_ratelimit_bans_total", Counter,
		[]string{"client_id", "outcome"},
		"Bans that began, of the client or a user of it. Outcomes: banned, counted by the instance that stored it; would_ban (dry-run), counted by each instance that would have.",
	}
	bannedInfo = Info{
		"oauth_ratelimit_banned", Gauge, nil,
		"Clients and users of them that are banned, and kept out by the policies in force. Every instance knows all of them.",
	}
	longestBanInfo = Info{
		"oauth_ratelimit_ban_longest_seconds", Gauge, nil,
		"Length of the longest ban in force, from its beginning to its end.",
	}
	bansWaitingInfo = Info{
		"oauth_ratelimit_bans_waiting", Gauge, nil,
		"Bans of this instance that the database has not stored yet: other instances do not know them.",
	}
	usageInfo = Info{
		"oauth_ratelimit_usage_ratio", Gauge,
		[]string{"client_id"},
		"Highest share of a limit in use among the keys of the client that asked in the last half minute to minute; 1 is the limit.",
	}
	limitInfo = Info{
		"oauth_ratelimit_limit", Gauge,
		[]string{"client_id", "kind", "limit", "grants"},
		"Limit in force: requests admitted per window. Kind user: for each user of the client; kind client: for its client_credentials; kind total: for all of these together; kind source: for each source address. Grants: those of users that it counts; empty: all.",
	}
	limitWindowInfo = Info{
		"oauth_ratelimit_limit_window_seconds", Gauge,
		[]string{"client_id", "kind", "limit", "grants"},
		"Window of the limit in force.",
	}
	defaultLimitInfo = Info{
		"oauth_ratelimit_default_limit", Gauge,
		[]string{"kind", "limit", "grants"},
		"Limit of every client without one of its own: requests admitted per window.",
	}
	defaultWindowInfo = Info{
		"oauth_ratelimit_default_limit_window_seconds", Gauge,
		[]string{"kind", "limit", "grants"},
		"Window of the default limit.",
	}
	trustedInfo = Info{
		"oauth_ratelimit_trusted", Gauge,
		[]string{"client_id"},
		"1 for a client that must never be denied.",
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
		"Most counters that are kept in memory.",
	}
	evictionsInfo = Info{
		"oauth_ratelimit_evictions_total", Counter, nil,
		"Counters dropped from memory before they were idle, because it was full.",
	}
	overflowInfo = Info{
		"oauth_ratelimit_overflow_decisions_total", Counter, nil,
		"Decisions on a counter that several keys share, because memory was full of keys that must stay.",
	}
	labelledInfo = Info{
		"oauth_metrics_labelled_clients", Gauge, nil,
		"Clients that have their own label; all others are counted as \"other\".",
	}
)

// The token endpoint and HTTP.
var (
	tokensInfo = Info{
		"oauth_token_responses_total", Counter,
		[]string{"grant_type", "error"},
		"Answers of the token endpoint. Error is none, rate_limited (429), overloaded (503, refused while overloaded), or the error parameter of the answer (RFC 6749 5.2).",
	}
	requestsInfo = Info{
		"oauth_http_request_duration_seconds", Histogram,
		[]string{"route", "method", "code"},
		"Time from the request's headers to the end of the answer. Native and classic buckets.",
	}
	inFlightInfo = Info{
		"oauth_http_requests_in_flight", Gauge, nil,
		"Requests being answered.",
	}
	hashesInfo = Info{
		"oauth_password_hashes_total", Counter,
		[]string{"place"},
		"Passwords hashed. Place: process (one of the lowest priority) or server, where these are not used or one failed.",
	}
	dbCallsInfo = Info{
		"oauth_http_request_db_calls", Histogram,
		[]string{"route"},
		"Calls to the store that one request made.",
	}
)

// The store.
var (
	storeInfo = Info{
		"oauth_store_operation_duration_seconds", Histogram,
		[]string{"operation"},
		"Time that an operation of the store took, failed ones included. Native and classic buckets.",
	}
	storeErrorsInfo = Info{
		"oauth_store_errors_total", Counter,
		[]string{"operation"},
		"Operations of the store that failed; finding nothing, a conflict or a lost claim is an answer, not a failure. decode_ and a table: a record of it cannot be read.",
	}
)

// The syncer, which shares counts between instances.
var (
	gAgeInfo = Info{
		"oauth_sync_g_age_seconds", Gauge, nil,
		"Longest time, recently, for which requests of a key were decided on the same g: since the database was last asked, or since the first request after a pause.",
	}
	lateInfo = Info{
		"oauth_sync_late_seconds", Gauge, nil,
		"How long the first exchange that is due has been waiting.",
	}
	unconfirmedInfo = Info{
		"oauth_sync_unconfirmed_seconds", Gauge, nil,
		"Age of the oldest write that is not known to be applied.",
	}
	degradedInfo = Info{
		"oauth_sync_degraded_seconds", Gauge, nil,
		"How long the database has failed to take or give counts; 0 if it does not.",
	}
	dirtyInfo = Info{
		"oauth_sync_dirty_keys", Gauge, nil,
		"Keys that wait for an exchange with the database.",
	}
	dueInfo = Info{
		"oauth_sync_due_keys", Gauge, nil,
		"Keys of those whose exchange is due.",
	}
	instancesInfo = Info{
		"oauth_sync_instances", Gauge, nil,
		"Instances that are alive as far as this one knows, itself included.",
	}
	commandsInfo = Info{
		"oauth_sync_commands_total", Counter,
		[]string{"command"},
		"Commands sent to the database: write (a bulk), read (documents), clock, and beat (the heartbeat of this instance).",
	}
	commandFailsInfo = Info{
		"oauth_sync_command_failures_total", Counter,
		[]string{"command"},
		"Commands of those that failed as a whole.",
	}
	bulkSizeInfo = Info{
		"oauth_sync_bulk_size", Histogram,
		[]string{"command"},
		"Keys in one command, of write and read.",
	}
	bulkDurationInfo = Info{
		"oauth_sync_bulk_duration_seconds", Histogram,
		[]string{"command"},
		"Time that one command took, of write and read. Native and classic buckets.",
	}
	writesInfo = Info{
		"oauth_sync_writes_total", Counter,
		[]string{"outcome"},
		"Writes of a key: applied, fallback (applied without compare-and-swap), conflict, unknown (no answer; resolved later), rejected.",
	}
	expiredInfo = Info{
		"oauth_sync_expired_counts_total", Counter, nil,
		"Counts that grew too old to matter before they could be written.",
	}
	foreignInfo = Info{
		"oauth_sync_foreign_documents_total", Counter, nil,
		"Documents read that make no sense, as a whole or in part.",
	}
	driftInfo = Info{
		"oauth_sync_drift_total", Counter, nil,
		"Times that a document held less than this instance had written; must stay 0.",
	}
	clonesInfo = Info{
		"oauth_sync_clones_total", Counter, nil,
		"Times that a copy of this process was found to run under its ID, and another ID was taken.",
	}
	syncPanicsInfo = Info{
		"oauth_sync_panics_total", Counter, nil,
		"Panics of the syncer; each was logged, and it continued.",
	}
	leftoverInfo = Info{
		"oauth_sync_final_flush_leftover", Gauge, nil,
		"Counts that the last flush before the stop could not write.",
	}
	clockOffsetInfo = Info{
		"oauth_clock_offset_seconds", Gauge,
		[]string{"clock"},
		"By how much a clock is ahead of process time, which counts go by: wall (of this machine) and store (of the database; 0 while it cannot be read).",
	}
)

// The process and its configuration.
var (
	configRevisionInfo = Info{
		"oauth_config_revision", Gauge,
		[]string{"config"},
		"Revision in use of a configuration that is read from the store (clients, policies). Only a difference has a meaning.",
	}
	configAgeInfo = Info{
		"oauth_config_age_seconds", Gauge,
		[]string{"config"},
		"Time since the configuration was last known to be the newest.",
	}
	unreadableInfo = Info{
		"oauth_clients_unreadable", Gauge, nil,
		"Clients that are not served, because what is stored of them cannot be read or is not valid.",
	}
	unregisteredInfo = Info{
		"oauth_policies_unregistered", Gauge, nil,
		"Policies in the configuration file for clients that are not registered: deleted, not registered yet, or misspelt.",
	}
	fileRefusedInfo = Info{
		"oauth_config_reload_failed", Gauge, nil,
		"1 while the configuration file cannot be read or is not valid since it changed, so that the last good one stays in use.",
	}
	fileRestartInfo = Info{
		"oauth_config_restart_needed", Gauge, nil,
		"Fields of the configuration file that have changed since the start and need a restart.",
	}
	fileLimitsInfo = Info{
		"oauth_config_limits_hash", Gauge, nil,
		"Hash of the limits in the configuration file in use. Only a difference has a meaning: instances do not agree on what applies.",
	}
	panicsInfo = Info{
		"oauth_loop_panics_total", Counter,
		[]string{"loop"},
		"Panics of background loops, which were restarted. Of equal ones in a row, one an hour is logged.",
	}
	buildInfo = Info{
		"oauth_build_info", Gauge,
		[]string{"version", "revision", "goversion"},
		"Always 1; the labels say what is running.",
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
