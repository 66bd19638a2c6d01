package dashboards

const (
	admitted = `outcome=~"allowed|trusted|would_deny"`

	// The limits in requests per second, comparable with the rates of requests.
	defaultLimits = `max by (kind, limit) (oauth_ratelimit_default_limit{$i} / oauth_ratelimit_default_limit_window_seconds{$i})`
	clientLimits  = `max by (client_id, kind, limit) (oauth_ratelimit_limit{$k} / oauth_ratelimit_limit_window_seconds{$k})`
	ownLimits     = clientLimits + ` unless (` + clientLimits + ` == on (kind, limit) group_left () ` + defaultLimits + `)`
)

func rateLimits() Dashboard {
	return dashboard("oauth-ratelimits", "OAuth: Rate limits",
		"Which clients are limited, which come close, and what a change would do.",
		[]Variable{
			datasourceVariable(),
			choice("client", "Client", "label_values(oauth_ratelimit_decisions_total, client_id)"),
			choice("grant", "Grant", "label_values(oauth_ratelimit_decisions_total, grant_type)"),
			instanceChoice(),
		},
		concat(limitNumbers(), limitCharts(), dryRun(), closeToLimit(), limiterMemory())...)
}

func limitNumbers() []Panel {
	return []Panel{
		row("At a glance"),
		number("Admitted", "Requests admitted by the rate limiter, including dry-run and trusted clients.", "reqps",
			`sum(rate(oauth_ratelimit_decisions_total{$c,`+admitted+`}[$__rate_interval]))`),
		number("Denied", "Requests answered with 429.", "reqps",
			`sum(rate(oauth_ratelimit_decisions_total{$c,outcome="denied"}[$__rate_interval]))`),
		number("Would be denied", "Requests of clients in dry-run that enforce would have answered with 429.", "reqps",
			`sum(rate(oauth_ratelimit_decisions_total{$c,outcome="would_deny"}[$__rate_interval]))`),
		number("Clients denied", "Clients with at least one denied request.", "none",
			`count(sum by (client_id) (rate(oauth_ratelimit_decisions_total{$c,outcome="denied"}[$__rate_interval])) > 0) or vector(0)`),
		number("Closest to a limit", "Highest share of a limit in use by any key.", "percentunit",
			`max(oauth_ratelimit_usage_ratio{$k})`).warn(0.8, 1),
		number("Trusted denied", "Denials of trusted clients. Must always be 0.", "none",
			`sum(sum by (client_id) (increase(oauth_ratelimit_decisions_total{$c,outcome="denied"}[$__range])) and on (client_id) max by (client_id) (oauth_ratelimit_trusted{$k}) == 1) or vector(0)`).warn(0.001, 0.5),
	}
}

// limitCharts are the two charts of Allegro's article, under the titles they have there.
func limitCharts() []Panel {
	return []Panel{
		row("Who is limited"),
		lines("Ratelimit Denied Rate", "Denied requests by client. Each colour is a client.", "reqps",
			query(`sum by (client_id) (rate(oauth_ratelimit_decisions_total{$c,outcome="denied"}[$__rate_interval])) > 0`, "{{client_id}}"),
		).sized(12, 11),
		lines("Ratelimit Allowed Rate",
			"Admitted requests by client, and the limits: the default in red, a client's own dashed. A limit of kind user holds for each user, so a client with many users may go above it.", "reqps",
			query(`sum by (client_id) (rate(oauth_ratelimit_decisions_total{$c,`+admitted+`}[$__rate_interval])) > 0`, "{{client_id}}"),
			query(defaultLimits, "default limit ({{kind}}, {{limit}})"),
			query(ownLimits, "limit of {{client_id}} ({{kind}}, {{limit}})"),
		).sized(12, 11).
			with(byRegexp("/^default limit .*/", limitLine("red", false)...)).
			with(byRegexp("/^limit of .*/", limitLine("", true)...)),
	}
}

// dryRun shows what enforce, or the candidate policy, would deny.
func dryRun() []Panel {
	return []Panel{
		row("Dry-run and candidate policy"),
		lines("Would-be denials in dry-run", "Requests admitted only because their client is in dry-run, by client.", "reqps",
			query(`sum by (client_id) (rate(oauth_ratelimit_decisions_total{$c,outcome="would_deny"}[$__rate_interval])) > 0`, "{{client_id}}")),
		lines("Candidate against live",
			"Requests that the candidate policy would deny, and those that the live policy denies (or would deny, in dry-run), for the selected clients.", "reqps",
			query(`sum(rate(oauth_ratelimit_decisions_total{$c,outcome="candidate_would_deny"}[$__rate_interval]))`, "candidate"),
			query(`sum(rate(oauth_ratelimit_decisions_total{$c,outcome=~"denied|would_deny"}[$__rate_interval]))`, "live")),
		table("Candidate by client", "Denials in the last hour under the candidate policy and under the live one.",
			column{"Candidate", "short", now(`sum by (client_id) (increase(oauth_ratelimit_decisions_total{$c,outcome="candidate_would_deny"}[1h]))`)},
			column{"Live", "short", now(`sum by (client_id) (increase(oauth_ratelimit_decisions_total{$c,outcome=~"denied|would_deny"}[1h]))`)}),
		table("Mode and trust", "Mode in force and trust, by client.",
			column{"Mode", "none", now(`max by (client_id, mode) (oauth_ratelimit_mode{$k})`)},
			column{"Trusted", "none", now(`max by (client_id) (oauth_ratelimit_trusted{$k})`)}),
	}
}

func closeToLimit() []Panel {
	share := Property{"custom.cellOptions", map[string]any{"type": "gauge", "mode": "basic"}}
	return []Panel{
		row("Close to a limit"),
		table("Near the limit", "Clients by the highest share of a limit that any of their keys uses.",
			column{"Usage", "percentunit", now(`topk(20, max by (client_id) (oauth_ratelimit_usage_ratio{$k}))`)},
			column{"Denied", "reqps", now(`sum by (client_id) (rate(oauth_ratelimit_decisions_total{$c,outcome="denied"}[$__rate_interval]))`)},
			column{"Admitted", "reqps", now(`sum by (client_id) (rate(oauth_ratelimit_decisions_total{$c,` + admitted + `}[$__rate_interval]))`)},
		).warn(0.8, 1).with(byName("Usage", share, Property{"max", 1}, Property{"min", 0})),
		lines("Usage of the limit", "Highest share of a limit in use among the keys of each client.", "percentunit",
			query(`topk(20, max by (client_id) (oauth_ratelimit_usage_ratio{$k}))`, "{{client_id}}")).warn(0.8, 1),
		lines("Soft warnings", "Requests admitted above the soft ratio of a limit, by client. Warn these clients before they are denied.", "reqps",
			query(`sum by (client_id) (rate(oauth_ratelimit_soft_warnings_total{$c}[$__rate_interval])) > 0`, "{{client_id}}")),
		lines("Decisions by grant and outcome", "All decisions of the rate limiter.", "reqps",
			query(`sum by (grant_type, outcome) (rate(oauth_ratelimit_decisions_total{$c,outcome!="candidate_would_deny"}[$__rate_interval])) > 0`, "{{grant_type}} {{outcome}}")).stacked(),
		lines("Decided in an outage", "Requests decided by on_outage, by client, while the database did not accept counts.", "reqps",
			query(`sum by (client_id) (rate(oauth_ratelimit_outage_decisions_total{$k}[$__rate_interval]))`, "{{client_id}}")).sized(24, 6),
	}
}

func limiterMemory() []Panel {
	return []Panel{
		row("Memory"),
		lines("Counters in memory", "Counted pairs of client and user, and the maximum kept in memory.", "short",
			query(`sum by (instance) (oauth_ratelimit_counters{$i})`, "{{instance}}"),
			query(`max(oauth_ratelimit_counters_max{$i})`, "maximum"),
		).sized(8, 8).with(byName("maximum", limitLine("red", false)...)),
		lines("Memory too small", "Counters dropped because memory was full, and decisions on a counter shared by several keys. If not 0, raise rate_limit.max_keys.", "ops",
			query(`sum by (instance) (rate(oauth_ratelimit_evictions_total{$i}[$__rate_interval]))`, "{{instance}} evictions"),
			query(`sum by (instance) (rate(oauth_ratelimit_overflow_decisions_total{$i}[$__rate_interval]))`, "{{instance}} shared")).sized(8, 8),
		lines("Clients with a label", "Clients with a metric label of their own. All others are counted as \"other\".", "short",
			query(`max by (instance) (oauth_metrics_labelled_clients{$i})`, "{{instance}}")).sized(8, 8),
	}
}
