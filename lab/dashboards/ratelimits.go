package dashboards

const (
	admitted   = `outcome=~"allowed|trusted|delayed|would_deny|would_reuse|would_delay|would_ban"`
	delays     = `sum by (le) (rate(oauth_ratelimit_delay_seconds_bucket{$i}[$__rate_interval]))`
	leaseWaits = `sum by (le) (rate(oauth_ratelimit_lease_wait_seconds_bucket{$i}[$__rate_interval]))`

	// Clients that were not denied in the time that rates are taken over: trusted ones, and those in
	// dry-run or off. A scrape that failed does not make them appear as others.
	trustedClients  = `max by (client_id) (max_over_time(oauth_ratelimit_trusted{$k}[$over])) == 1`
	notEnforced     = `max by (client_id, mode) (max_over_time(oauth_ratelimit_mode{$k,mode!="enforce"}[$over])) == 1`
	admittedRate    = `sum by (client_id) (rate(oauth_ratelimit_decisions_total{$c,` + admitted + `}[$over]))`
	enforcedRate    = admittedRate + ` unless on (client_id) (` + trustedClients + `) unless on (client_id) (` + notEnforced + `)`
	trustedRate     = admittedRate + ` and on (client_id) (` + trustedClients + `)`
	notEnforcedRate = `(` + notEnforced + `) * on (client_id) group_left () (` + admittedRate + `) unless on (client_id) (` + trustedClients + `)`

	// The limits in requests per second, comparable with the rates of requests: one line each. The
	// limit of a user is left out where it equals that of client_credentials, and the limits of a
	// client where they equal the default.
	defaultForClient = `max by (limit) (oauth_ratelimit_default_limit{$i,kind="client"} / oauth_ratelimit_default_limit_window_seconds{$i,kind="client"})`
	defaultForUser   = `max by (limit) (oauth_ratelimit_default_limit{$i,kind="user"} / oauth_ratelimit_default_limit_window_seconds{$i,kind="user"})`
	limitOfClient    = `max by (client_id, limit) (oauth_ratelimit_limit{$k,kind="client"} / oauth_ratelimit_limit_window_seconds{$k,kind="client"})`
	limitOfUser      = `max by (client_id, limit) (oauth_ratelimit_limit{$k,kind="user"} / oauth_ratelimit_limit_window_seconds{$k,kind="user"})`
	otherForUser     = defaultForUser + ` unless (` + defaultForUser + ` == ` + defaultForClient + `)`
	ownOfClient      = limitOfClient + ` unless (` + limitOfClient + ` == on (limit) group_left () ` + defaultForClient + `)`
	ownOfUser        = limitOfUser + ` unless (` + limitOfUser + ` == on (limit) group_left () ` + defaultForUser + `) unless (` + limitOfUser + ` == ` + limitOfClient + `)`
)

func rateLimits() Dashboard {
	return dashboard("oauth-ratelimits", "OAuth: Rate limits",
		"Which clients are limited, which come close, and what a change would do.",
		[]Variable{
			choice("client", "Client", `label_values(oauth_ratelimit_decisions_total{job=~"$job",namespace=~"$namespace"}, client_id)`),
			choice("grant", "Grant", `label_values(oauth_ratelimit_decisions_total{job=~"$job",namespace=~"$namespace"}, grant_type)`),
			rateOver(),
		},
		concat(limitNumbers(), limitCharts(), bans(), waste(), waits(), dryRun(), closeToLimit(), limiterMemory())...)
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
		lines("Ratelimit Denied Rate", "Denied requests of each client that was denied in the time shown.", "reqps",
			query(everUsed("$over", "client_id", `oauth_ratelimit_decisions_total{$c,outcome="denied"}`), "{{client_id}}"),
		).sized(12, 11),
		lines("Ratelimit Allowed Rate",
			"Admitted requests of each client, and the limits: the default in red, a client's own dashed. Dotted clients are never denied: they are trusted, or in dry-run. "+
				"A limit of a user holds for each user, so a client with many users may go above it. "+
				"A client that uses up its limit at once is drawn above it if the window of the limit is longer than the time that rates are taken over; choose a longer one at the top.", "reqps",
			query(enforcedRate, "{{client_id}}"),
			query(trustedRate, "{{client_id}} (trusted)"),
			query(notEnforcedRate, "{{client_id}} ({{mode}})"),
			query(defaultForClient, "default limit ({{limit}})"),
			query(otherForUser, "default limit of each user ({{limit}})"),
			query(ownOfClient, "limit of {{client_id}} ({{limit}})"),
			query(ownOfUser, "limit of each user of {{client_id}} ({{limit}})"),
		).sized(12, 11).
			with(byRegexp(`/\((trusted|dry_run|off)\)$/`, dotted()...)).
			with(byRegexp("/^default limit .*/", limitLine("red", false)...)).
			with(byRegexp("/^limit of .*/", limitLine("", true)...)),
	}
}

// everUsed is a rate by the given labels, of those that counted something in the time shown: zero is
// drawn as a line, and labels that stayed at zero are left out.
func everUsed(over, by, counter string) string {
	return `sum by (` + by + `) (rate(` + counter + `[` + over + `]))` +
		` and (sum by (` + by + `) (increase(` + counter + `[$__range] @ end())) > 0)`
}

// bans shows who is kept out because of going on after being denied.
func bans() []Panel {
	return []Panel{
		row("Bans"),
		lines("Banned now", "Banned clients and users. Every instance has the same number.", "none",
			query(`max(oauth_ratelimit_banned{$i})`, "banned"),
			query(`sum(oauth_ratelimit_bans_waiting{$i})`, "not stored yet")),
		lines("Denied by a ban", "Requests denied because of a ban, and requests of clients in dry-run that would have been.", "reqps",
			query(everUsed("$__rate_interval", "client_id", `oauth_ratelimit_decisions_total{$c,outcome="banned"}`), "{{client_id}}"),
			query(everUsed("$__rate_interval", "client_id", `oauth_ratelimit_decisions_total{$c,outcome="would_ban"}`), "{{client_id}} (dry-run)"),
			query(`sum(rate(oauth_ratelimit_decisions_total{$c,outcome="candidate_would_ban"}[$__rate_interval]))`, "candidate")),
		table("Bans by client", "Bans of the client and its users that began in the last hour; in dry-run, that would have begun, at each instance.",
			column{"Bans", "short", now(`sum by (client_id) (increase(oauth_ratelimit_bans_total{$k,outcome="banned"}[1h]))`)},
			column{"In dry-run", "short", now(`sum by (client_id) (increase(oauth_ratelimit_bans_total{$k,outcome="would_ban"}[1h]))`)}),
		lines("Longest ban", "Total length of the longest ban in force.", "s",
			query(`max(oauth_ratelimit_ban_longest_seconds{$i})`, "longest")),
	}
}

// waste shows the tokens that were issued for nothing, and those that were handed out again instead.
func waste() []Panel {
	return []Panel{
		row("Wasted tokens"),
		lines("Share of wasted tokens",
			"Share of the client's tokens that were issued while an equal one (same client, credential, user and scopes) had more than half of its life left. Such a client does not reuse its tokens.", "percentunit",
			query(`topk(20, sum by (client_id) (rate(oauth_tokens_wasted_total{$c}[$__rate_interval])) / (sum by (client_id) (rate(oauth_tokens_issued_total{$c}[$__rate_interval])) > 0))`, "{{client_id}}")).warn(0.5, 0.9),
		table("Wasted tokens by client", "Tokens in the last hour: issued, wasted, and wasted by an early refresh.",
			column{"Issued", "short", now(`sum by (client_id) (increase(oauth_tokens_issued_total{$c}[1h]))`)},
			column{"Wasted", "short", now(`sum by (client_id) (increase(oauth_tokens_wasted_total{$c}[1h]))`)},
			column{"Early refreshes", "short", now(`sum by (client_id) (increase(oauth_tokens_wasted_total{$c,grant_type="refresh_token"}[1h]))`)}),
		lines("Answered with the last token", "Requests over the limit that got the last token again (over_limit: reuse).", "reqps",
			query(everUsed("$__rate_interval", "client_id", `oauth_ratelimit_decisions_total{$c,outcome="reused"}`), "{{client_id}}")),
		lines("Would be answered with the last token", "The same for clients in dry-run and for the candidate policy, for the selected clients.", "reqps",
			query(everUsed("$__rate_interval", "client_id", `oauth_ratelimit_decisions_total{$c,outcome="would_reuse"}`), "{{client_id}}"),
			query(`sum(rate(oauth_ratelimit_decisions_total{$c,outcome="candidate_would_reuse"}[$__rate_interval]))`, "candidate")),
	}
}

// waits shows the requests that were held until their turn.
func waits() []Panel {
	return []Panel{
		row("Waiting requests (max_wait)"),
		lines("Admitted after a wait", "Requests over the limit that were admitted after a wait. For clients in dry-run and the candidate policy: that would have waited.", "reqps",
			query(everUsed("$__rate_interval", "client_id", `oauth_ratelimit_decisions_total{$c,outcome="delayed"}`), "{{client_id}}"),
			query(everUsed("$__rate_interval", "client_id", `oauth_ratelimit_decisions_total{$c,outcome="would_delay"}`), "{{client_id}} (dry-run)"),
			query(`sum(rate(oauth_ratelimit_decisions_total{$c,outcome="candidate_would_delay"}[$__rate_interval]))`, "candidate")),
		lines("Time waited", "How long these requests waited.", "s",
			query(`histogram_quantile(0.5, `+delays+`)`, "p50"),
			query(`histogram_quantile(0.99, `+delays+`)`, "p99")),
		lines("Waiting now", "Requests that wait at the moment, at most 1,000 at each instance.", "short",
			query(`sum by (instance) (oauth_ratelimit_waiting{$i})`, "{{instance}}")),
	}
}

// dryRun shows what enforce, or the candidate policy, would deny.
func dryRun() []Panel {
	return []Panel{
		row("Dry-run and candidate policy"),
		lines("Requests that dry-run would deny", "Requests admitted only because their client is in dry-run. Enforcing would deny them.", "reqps",
			query(everUsed("$__rate_interval", "client_id", `oauth_ratelimit_decisions_total{$c,outcome="would_deny"}`), "{{client_id}}")),
		lines("Denied by the candidate policy, and by the one in force",
			"Requests that the candidate policy would deny, and those that the policy in force denies (or would deny, in dry-run), for the selected clients.", "reqps",
			query(`sum(rate(oauth_ratelimit_decisions_total{$c,outcome="candidate_would_deny"}[$__rate_interval]))`, "candidate"),
			query(`sum(rate(oauth_ratelimit_decisions_total{$c,outcome=~"denied|would_deny"}[$__rate_interval]))`, "in force")),
		table("Candidate policy by client", "Denials in the last hour: by the candidate policy, and by the one in force.",
			column{"Candidate", "short", now(`sum by (client_id) (increase(oauth_ratelimit_decisions_total{$c,outcome="candidate_would_deny"}[1h]))`)},
			column{"In force", "short", now(`sum by (client_id) (increase(oauth_ratelimit_decisions_total{$c,outcome=~"denied|would_deny"}[1h]))`)}),
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
			query(everUsed("$__rate_interval", "client_id", `oauth_ratelimit_soft_warnings_total{$c}`), "{{client_id}}")),
		lines("Decisions by grant and outcome", "All decisions of the rate limiter.", "reqps",
			query(everUsed("$__rate_interval", "grant_type, outcome", `oauth_ratelimit_decisions_total{$c,outcome!~"candidate_.*"}`), "{{grant_type}} {{outcome}}")).stacked(),
		lines("Decided without the database", "Requests decided by on_outage, by client, while the database did not accept counts. Usually 0.", "reqps",
			query(`sum by (client_id) (rate(oauth_ratelimit_outage_decisions_total{$k}[$__rate_interval]))`, "{{client_id}}")),
		lines("Wait for the database", "How long requests waited for permits of a strict limit or for the first read of their key.", "s",
			query(`histogram_quantile(0.5, `+leaseWaits+`)`, "p50"),
			query(`histogram_quantile(0.99, `+leaseWaits+`)`, "p99")),
	}
}

func limiterMemory() []Panel {
	return []Panel{
		row("Memory for counters"),
		lines("Counters in memory", "Counted pairs of client and user, and the maximum kept in memory.", "short",
			query(`sum by (instance) (oauth_ratelimit_counters{$i})`, "{{instance}}"),
			query(`max(oauth_ratelimit_counters_max{$i})`, "maximum"),
		).sized(8, 8).with(byName("maximum", limitLine("red", false)...)),
		lines("Counters without room", "Counters dropped because memory was full, and decisions on a counter that several keys share. Usually 0; if not, raise rate_limit.max_keys.", "ops",
			query(`sum by (instance) (rate(oauth_ratelimit_evictions_total{$i}[$__rate_interval]))`, "{{instance}} evictions"),
			query(`sum by (instance) (rate(oauth_ratelimit_overflow_decisions_total{$i}[$__rate_interval]))`, "{{instance}} shared")).sized(8, 8),
		lines("Clients shown by name", "Clients with a metric label of their own. All others are counted as \"other\".", "short",
			query(`max by (instance) (oauth_metrics_labelled_clients{$i})`, "{{instance}}")).sized(8, 8),
	}
}
