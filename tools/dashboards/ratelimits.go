package dashboards

const (
	admitted = `outcome=~"allowed|trusted|would_deny"`

	// The limits as rates, to be drawn beside rates.
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
		concat(limitNumbers(), limitCharts(), rehearsal(), comingClose(), limiterMemory())...)
}

func limitNumbers() []Panel {
	return []Panel{
		row("At a glance"),
		number("Admitted", "Requests let through by the limiter, in dry-run and trusted ones included.", "reqps",
			`sum(rate(oauth_ratelimit_decisions_total{$c,`+admitted+`}[$__rate_interval]))`),
		number("Denied", "Requests answered with 429.", "reqps",
			`sum(rate(oauth_ratelimit_decisions_total{$c,outcome="denied"}[$__rate_interval]))`),
		number("Would be denied", "Requests of clients in dry-run that enforcing would have answered with 429.", "reqps",
			`sum(rate(oauth_ratelimit_decisions_total{$c,outcome="would_deny"}[$__rate_interval]))`),
		number("Clients denied", "Clients with at least one denied request.", "none",
			`count(sum by (client_id) (rate(oauth_ratelimit_decisions_total{$c,outcome="denied"}[$__rate_interval])) > 0) or vector(0)`),
		number("Closest to a limit", "Highest share of a limit in use by any key.", "percentunit",
			`max(oauth_ratelimit_usage_ratio{$k})`).warn(0.8, 1),
		number("Trusted denied", "Denials of trusted clients. This must be 0, always.", "none",
			`sum(sum by (client_id) (increase(oauth_ratelimit_decisions_total{$c,outcome="denied"}[$__range])) and on (client_id) max by (client_id) (oauth_ratelimit_trusted{$k}) == 1) or vector(0)`).warn(0.001, 0.5),
	}
}

// limitCharts are the two charts of Allegro's article.
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

// rehearsal is what would happen if something were switched on.
func rehearsal() []Panel {
	return []Panel{
		row("Before it is enforced"),
		lines("Would-be denials in dry-run", "Requests that passed because their client is in dry-run, by client.", "reqps",
			query(`sum by (client_id) (rate(oauth_ratelimit_decisions_total{$c,outcome="would_deny"}[$__rate_interval])) > 0`, "{{client_id}}")),
		lines("Candidate against live",
			"What the candidate policy would deny, beside what the live one denies (or would, in dry-run), for the selected clients.", "reqps",
			query(`sum(rate(oauth_ratelimit_decisions_total{$c,outcome="candidate_would_deny"}[$__rate_interval]))`, "candidate"),
			query(`sum(rate(oauth_ratelimit_decisions_total{$c,outcome=~"denied|would_deny"}[$__rate_interval]))`, "live")),
		table("Candidate by client", "Denials in the last hour: the candidate's beside the live ones.",
			column{"Candidate", "short", now(`sum by (client_id) (increase(oauth_ratelimit_decisions_total{$c,outcome="candidate_would_deny"}[1h]))`)},
			column{"Live", "short", now(`sum by (client_id) (increase(oauth_ratelimit_decisions_total{$c,outcome=~"denied|would_deny"}[1h]))`)}),
		table("Mode and trust", "What applies to each client.",
			column{"Mode", "none", now(`max by (client_id, mode) (oauth_ratelimit_mode{$k})`)},
			column{"Trusted", "none", now(`max by (client_id) (oauth_ratelimit_trusted{$k})`)}),
	}
}

func comingClose() []Panel {
	share := Property{"custom.cellOptions", map[string]any{"type": "gauge", "mode": "basic"}}
	return []Panel{
		row("Coming close"),
		table("Near the limit", "Clients by the highest share of a limit that any of their keys uses.",
			column{"Usage", "percentunit", now(`topk(20, max by (client_id) (oauth_ratelimit_usage_ratio{$k}))`)},
			column{"Denied", "reqps", now(`sum by (client_id) (rate(oauth_ratelimit_decisions_total{$c,outcome="denied"}[$__rate_interval]))`)},
			column{"Admitted", "reqps", now(`sum by (client_id) (rate(oauth_ratelimit_decisions_total{$c,` + admitted + `}[$__rate_interval]))`)},
		).warn(0.8, 1).with(byName("Usage", share, Property{"max", 1}, Property{"min", 0})),
		lines("Usage of the limit", "Highest share of a limit in use among the keys of each client.", "percentunit",
			query(`topk(20, max by (client_id) (oauth_ratelimit_usage_ratio{$k}))`, "{{client_id}}")).warn(0.8, 1),
		lines("Soft warnings", "Requests let through above the soft ratio, by client: these clients should be told.", "reqps",
			query(`sum by (client_id) (rate(oauth_ratelimit_soft_warnings_total{$c}[$__rate_interval])) > 0`, "{{client_id}}")),
		lines("Decisions by grant and outcome", "All decisions.", "reqps",
			query(`sum by (grant_type, outcome) (rate(oauth_ratelimit_decisions_total{$c,outcome!="candidate_would_deny"}[$__rate_interval])) > 0`, "{{grant_type}} {{outcome}}")).stacked(),
		lines("Decided in an outage", "Requests that on_outage decided, by client: the database did not take the counts.", "reqps",
			query(`sum by (client_id) (rate(oauth_ratelimit_outage_decisions_total{$k}[$__rate_interval]))`, "{{client_id}}")).sized(24, 6),
	}
}

func limiterMemory() []Panel {
	return []Panel{
		row("Memory"),
		lines("Counters in memory", "Client and user pairs that are counted, and the most that are kept.", "short",
			query(`sum by (instance) (oauth_ratelimit_counters{$i})`, "{{instance}}"),
			query(`max(oauth_ratelimit_counters_max{$i})`, "most"),
		).sized(8, 8).with(byName("most", limitLine("red", false)...)),
		lines("Memory too small", "Counters dropped because memory was full, and decisions on a counter that keys had to share. Raise the maximum if this is not 0.", "ops",
			query(`sum by (instance) (rate(oauth_ratelimit_evictions_total{$i}[$__rate_interval]))`, "{{instance}} evictions"),
			query(`sum by (instance) (rate(oauth_ratelimit_overflow_decisions_total{$i}[$__rate_interval]))`, "{{instance}} shared")).sized(8, 8),
		lines("Clients with a label", "All other clients are shown as \"other\".", "short",
			query(`max by (instance) (oauth_metrics_labelled_clients{$i})`, "{{instance}}")).sized(8, 8),
	}
}
