package dashboards

func syncing() Dashboard {
	return dashboard("oauth-sync", "OAuth: Sync",
		"How the instances share their counts through the database.",
		[]Variable{datasourceVariable(), instanceChoice()},
		concat(syncNumbers(), staleness(), commands(), problems())...)
}

func syncNumbers() []Panel {
	numbers := []Panel{
		number("Oldest known count", "Age of the oldest count from the database that a decision may rest on.", "s",
			`max(oauth_sync_g_age_seconds{$i})`).warn(5, 15),
		number("Conflicts", "Share of writes that lost to another instance's write and were repeated.", "percentunit",
			`sum(rate(oauth_sync_writes_total{$i,outcome="conflict"}[$__rate_interval])) / (sum(rate(oauth_sync_writes_total{$i}[$__rate_interval])) > 0) or vector(0)`).warn(0.3, 0.6),
		number("Database failing", "How long the database has failed to read or write the counts of an instance.", "s",
			`max(oauth_sync_degraded_seconds{$i})`).warn(1, 30),
		number("Limits on outage", "Instances that cannot share their counts and decide limits by on_outage.", "none",
			`sum(oauth_ratelimit_outage{$i})`).warn(0.5, 1),
		number("Unconfirmed", "Age of the oldest write that is not known to be in the database.", "s",
			`max(oauth_sync_unconfirmed_seconds{$i})`).warn(3, 15),
		number("Drift", "Documents found with less than was written. Must always be 0.", "none",
			`sum(increase(oauth_sync_drift_total{$i}[$__range]))`).warn(0.001, 0.5),
		number("Clock offset", "Largest difference between the clock of a machine, or of the database, and the process time of an instance, which counts use.", "s",
			`max(abs(oauth_clock_offset_seconds{$i}))`).warn(0.5, 1),
		number("Commands per admission", "Database commands per request that the rate limiter admitted.", "none",
			`sum(rate(oauth_sync_commands_total{$i}[$__rate_interval])) / (sum(rate(oauth_ratelimit_decisions_total{$i,`+admitted+`}[$__rate_interval])) > 0) or vector(0)`),
	}
	for i := range numbers {
		numbers[i] = numbers[i].sized(3, 4)
	}
	return append([]Panel{row("At a glance")}, numbers...)
}

func staleness() []Panel {
	return []Panel{
		row("Staleness"),
		lines("Age of known counts", "Age of the oldest known count (g) among the active keys.", "s",
			query(`max by (instance) (oauth_sync_g_age_seconds{$i})`, "{{instance}}")).warn(5, 15),
		lines("Late exchanges", "How long the most overdue key has been waiting for its exchange.", "s",
			query(`max by (instance) (oauth_sync_late_seconds{$i})`, "{{instance}}")).warn(5, 15),
		lines("Unconfirmed writes", "Age of the oldest write that is not known to be applied: there was no answer, or the database rejects it.", "s",
			query(`max by (instance) (oauth_sync_unconfirmed_seconds{$i})`, "{{instance}}")).warn(3, 15),
		lines("Decided by on_outage", "Decisions made by on_outage (share or deny) because counts could not be shared, per second; and 1 for an instance that cannot share any.", "short",
			query(`sum by (instance, outcome) (rate(oauth_ratelimit_outage_decisions_total{$i}[$__rate_interval]))`, "{{instance}} {{outcome}}"),
			query(`max by (instance) (oauth_ratelimit_outage{$i})`, "{{instance}} outage")),
		lines("Keys to exchange", "Dirty: waiting for an exchange. Due: the exchange is due now.", "short",
			query(`sum by (instance) (oauth_sync_dirty_keys{$i})`, "{{instance}} dirty"),
			query(`sum by (instance) (oauth_sync_due_keys{$i})`, "{{instance}} due")),
		lines("Instances", "Instances alive, as counted by each of them. All should agree.", "short",
			query(`max by (instance) (oauth_sync_instances{$i})`, "{{instance}}")),
	}
}

func commands() []Panel {
	return []Panel{
		row("Database commands"),
		lines("Commands", "Commands per second by kind, and those that failed.", "ops",
			query(`sum by (command) (rate(oauth_sync_commands_total{$i}[$__rate_interval]))`, "{{command}}"),
			query(`sum(rate(oauth_sync_command_failures_total{$i}[$__rate_interval]))`, "failed")),
		lines("Writes by outcome", "Keys written per second.", "wps",
			query(`sum by (outcome) (rate(oauth_sync_writes_total{$i}[$__rate_interval]))`, "{{outcome}}")),
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
		row("Problems"),
		lines("Conflicts and fallbacks", "A key that lost several conflicts is written without compare-and-swap (fallback). Its count stays exact.", "wps",
			query(`sum by (instance) (rate(oauth_sync_writes_total{$i,outcome="conflict"}[$__rate_interval]))`, "{{instance}} conflicts"),
			query(`sum by (instance) (rate(oauth_sync_writes_total{$i,outcome="fallback"}[$__rate_interval]))`, "{{instance}} fallbacks")),
		lines("Unknown and rejected writes", "Unknown: there was no answer. Rejected: the database refused the document.", "wps",
			query(`sum by (instance) (rate(oauth_sync_writes_total{$i,outcome="unknown"}[$__rate_interval]))`, "{{instance}} unknown"),
			query(`sum by (instance) (rate(oauth_sync_writes_total{$i,outcome="rejected"}[$__rate_interval]))`, "{{instance}} rejected")),
		lines("Foreign documents, copies and panics", "Documents that cannot be read as counters, copies of a process that ran under its ID, and panics of the syncer. The log has the details.", "short",
			query(`sum by (instance) (increase(oauth_sync_foreign_documents_total{$i}[$__rate_interval]))`, "{{instance}} foreign"),
			query(`sum by (instance) (increase(oauth_sync_panics_total{$i}[$__rate_interval]))`, "{{instance}} panics"),
			query(`sum by (instance) (increase(oauth_sync_clones_total{$i}[$__rate_interval]))`, "{{instance}} copies")),
		lines("Clock offset", "How far the clock of the machine (wall) and of the database (store) are ahead of process time, which counts use. Process time ignores a clock that disagrees with the others.", "s",
			query(`max by (instance, clock) (oauth_clock_offset_seconds{$i})`, "{{instance}} {{clock}}")).signed(),
		lines("Revision of the configuration", "An instance that stays on another revision than the rest is not following changes.", "none",
			query(`max by (instance, config) (oauth_config_revision{$i})`, "{{instance}} {{config}}")),
		lines("Counts given up", "Expired: too old to matter before they could be written. Left: not written by the final flush of a stopping instance.", "short",
			query(`sum by (instance) (increase(oauth_sync_expired_counts_total{$i}[$__rate_interval]))`, "{{instance}} expired"),
			query(`max by (instance) (oauth_sync_final_flush_leftover{$i})`, "{{instance}} left")),
	}
}
