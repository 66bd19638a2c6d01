package dashboards

func syncing() Dashboard {
	return dashboard("oauth-sync", "OAuth: Sync",
		"How the instances share their counts through the database.",
		nil,
		concat(syncNumbers(), staleness(), commands(), problems())...)
}

func syncNumbers() []Panel {
	numbers := []Panel{
		number("Age of shared counts", "Age of the oldest count from the database that decisions use: up to ten seconds far below a limit, and less near it.", "s",
			`max(oauth_sync_g_age_seconds{$i})`).warn(12, 15),
		number("Writes repeated", "Share of writes of counts that came after another instance's write and were repeated. Some are normal; no count is lost.", "percentunit",
			`sum(rate(oauth_sync_writes_total{$i,outcome="conflict"}[$__rate_interval])) / (sum(rate(oauth_sync_writes_total{$i}[$__rate_interval])) > 0) or vector(0)`).warn(0.3, 0.6),
		number("Database away", "How long an instance has not reached its database or stored a count. Usually 0.", "s",
			`max(oauth_sync_degraded_seconds{$i})`).warn(1, 30),
		number("Limits by on_outage", "Instances that cannot share their counts and decide limits by on_outage. Usually 0.", "none",
			`sum(oauth_ratelimit_outage{$i})`).warn(0.5, 1),
		number("Unanswered write", "Age of the oldest write that is not confirmed. Usually milliseconds.", "s",
			`max(oauth_sync_unconfirmed_seconds{$i})`).warn(3, 15),
		number("Counts lost", "Documents that had less than was written to them, in the time shown. Must always be 0.", "none",
			`sum(increase(oauth_sync_drift_total{$i}[$__range]))`).warn(0.001, 0.5),
		number("Clocks differ by", "Largest difference between the clock of a machine, or of the database, and the process time of an instance, which counts use.", "s",
			`max(abs(oauth_clock_offset_seconds{$i}))`).warn(0.5, 1),
		number("Commands per request", "Database commands per request that the rate limiter admitted.", "none",
			`sum(rate(oauth_sync_commands_total{$i}[$__rate_interval])) / (sum(rate(oauth_ratelimit_decisions_total{$i,`+admitted+`}[$__rate_interval])) > 0) or vector(0)`),
	}
	for i := range numbers {
		numbers[i] = numbers[i].sized(3, 4)
	}
	return append([]Panel{row("At a glance")}, numbers...)
}

func staleness() []Panel {
	return []Panel{
		row("How current the counts are"),
		lines("How old the shared counts are", "Longest time that requests of a key were decided without reading the database: up to ten seconds far below a limit, and less near it.", "s",
			query(`max by (instance) (oauth_sync_g_age_seconds{$i})`, "{{instance}}")).warn(12, 15),
		lines("Counts that wait too long", "How long the oldest due key has been waiting for its exchange with the database.", "s",
			query(`max by (instance) (oauth_sync_late_seconds{$i})`, "{{instance}}")).warn(5, 15),
		lines("Writes without an answer", "Age of the oldest write that is not confirmed: there was no reply, or the database rejects it.", "s",
			query(`max by (instance) (oauth_sync_unconfirmed_seconds{$i})`, "{{instance}}")).warn(3, 15),
		lines("Decided without the database", "Decisions per second made by on_outage (share or deny) because counts could not be shared, and 1 for an instance that cannot share any. Usually 0.", "short",
			query(`sum by (instance, outcome) (rate(oauth_ratelimit_outage_decisions_total{$i}[$__rate_interval]))`, "{{instance}} {{outcome}}"),
			query(`max by (instance) (oauth_ratelimit_outage{$i})`, "{{instance}} outage")),
		lines("Keys that wait for the database", "Waiting: keys with counts to exchange. Due: keys that should be exchanged now.", "short",
			query(`sum by (instance) (oauth_sync_dirty_keys{$i})`, "{{instance}} waiting"),
			query(`sum by (instance) (oauth_sync_due_keys{$i})`, "{{instance}} due")),
		lines("Instances", "Live instances, as counted by each instance. All should agree.", "short",
			query(`max by (instance) (oauth_sync_instances{$i})`, "{{instance}}")),
	}
}

func commands() []Panel {
	return []Panel{
		row("Database commands"),
		lines("Commands", "Commands per second by kind, and those that failed.", "ops",
			query(`sum by (command) (rate(oauth_sync_commands_total{$i}[$__rate_interval]))`, "{{command}}"),
			query(`sum(rate(oauth_sync_command_failures_total{$i}[$__rate_interval]))`, "failed")),
		lines("Keys written", "Keys written per second, by outcome.", "wps",
			writesOf("applied", "written"),
			writesOf("fallback", "written to a key that instances share"),
			writesOf("conflict", "repeated after another instance's write"),
			writesOf("unknown", "without an answer yet"),
			writesOf("rejected", "refused")),
		lines("Keys per command", "The more keys in one command, the fewer commands.", "short",
			query(`histogram_quantile(0.5, sum by (le, command) (rate(oauth_sync_bulk_size_bucket{$i}[$__rate_interval])))`, "{{command}} p50"),
			query(`histogram_quantile(0.99, sum by (le, command) (rate(oauth_sync_bulk_size_bucket{$i}[$__rate_interval])))`, "{{command}} p99")),
		lines("Latency of a command", "Time that the database took.", "s",
			query(`histogram_quantile(0.5, sum by (le, command) (rate(oauth_sync_bulk_duration_seconds_bucket{$i}[$__rate_interval])))`, "{{command}} p50"),
			query(`histogram_quantile(0.99, sum by (le, command) (rate(oauth_sync_bulk_duration_seconds_bucket{$i}[$__rate_interval])))`, "{{command}} p99")),
	}
}

func problems() []Panel {
	return []Panel{
		row("When something is wrong"),
		lines("Writes without an answer, or refused", "Without a reply: sent again until they are confirmed. Refused by the database: see the log. Usually 0.", "wps",
			query(`sum by (instance) (rate(oauth_sync_writes_total{$i,outcome="unknown"}[$__rate_interval]))`, "{{instance}} without an answer"),
			query(`sum by (instance) (rate(oauth_sync_writes_total{$i,outcome="rejected"}[$__rate_interval]))`, "{{instance}} refused")),
		lines("Unexpected documents, copied processes, restarted loops", "Documents that cannot be read as counters, copies of a process that ran under its ID, and panics of the part that shares counts. Usually 0. The log has the details.", "short",
			query(`sum by (instance) (increase(oauth_sync_foreign_documents_total{$i}[$__rate_interval]))`, "{{instance}} documents"),
			query(`sum by (instance) (increase(oauth_sync_panics_total{$i}[$__rate_interval]))`, "{{instance}} restarts"),
			query(`sum by (instance) (increase(oauth_sync_clones_total{$i}[$__rate_interval]))`, "{{instance}} copies")),
		lines("Clocks", "How far the clock of the machine (wall) and of the database (store) are ahead of process time, which counts use. Process time ignores a clock that disagrees with the others.", "s",
			query(`max by (instance, clock) (oauth_clock_offset_seconds{$i})`, "{{instance}} {{clock}}")).signed(),
		lines("Revision of the configuration", "An instance that stays on another revision than the rest is not following changes.", "none",
			query(`max by (instance, config) (oauth_config_revision{$i})`, "{{instance}} {{config}}")),
		lines("Counts not written", "Expired: too old to matter before they could be written. Left: not written when an instance stopped. Usually 0.", "short",
			query(`sum by (instance) (increase(oauth_sync_expired_counts_total{$i}[$__rate_interval]))`, "{{instance}} expired"),
			query(`max by (instance) (oauth_sync_final_flush_leftover{$i})`, "{{instance}} left")),
	}
}

// writesOf are the writes with that outcome, under a name in plain words.
func writesOf(outcome, name string) Target {
	return query(`sum(rate(oauth_sync_writes_total{$i,outcome="`+outcome+`"}[$__rate_interval]))`, name)
}
