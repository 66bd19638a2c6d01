package dashboards

func syncing() Dashboard {
	return dashboard("oauth-sync", "OAuth: Sync",
		"How the instances share their counts through the database.",
		[]Variable{datasourceVariable(), instanceChoice()},
		concat(syncNumbers(), staleness(), traffic(), trouble())...)
}

func syncNumbers() []Panel {
	numbers := []Panel{
		number("Oldest g", "How old the oldest shared count is that a decision may rest on.", "s",
			`max(oauth_sync_g_age_seconds{$i})`).warn(5, 15),
		number("Conflicts", "Share of writes that lost against another instance and were repeated.", "percentunit",
			`sum(rate(oauth_sync_writes_total{$i,outcome="conflict"}[$__rate_interval])) / (sum(rate(oauth_sync_writes_total{$i}[$__rate_interval])) > 0) or vector(0)`).warn(0.3, 0.6),
		number("Database fails", "For how long the database has not taken or given the counts of some instance.", "s",
			`max(oauth_sync_degraded_seconds{$i})`).warn(1, 30),
		number("Limits on outage", "Instances that cannot share what they admit, and decide limits by their on_outage.", "none",
			`sum(oauth_ratelimit_outage{$i})`).warn(0.5, 1),
		number("Unconfirmed", "Age of the oldest write that is not known to be in the database.", "s",
			`max(oauth_sync_unconfirmed_seconds{$i})`).warn(3, 15),
		number("Drift", "Documents found with less than was written. This must be 0, always.", "none",
			`sum(increase(oauth_sync_drift_total{$i}[$__range]))`).warn(0.001, 0.5),
		number("Clock offset", "Largest difference of a machine's clock, or the database's, to the process time of an instance, which counts go by.", "s",
			`max(abs(oauth_clock_offset_seconds{$i}))`).warn(0.5, 1),
		number("Commands per admission", "Database commands for each request that the limiter admitted.", "none",
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
		lines("Age of g", "Age of the oldest g among the active keys.", "s",
			query(`max by (instance) (oauth_sync_g_age_seconds{$i})`, "{{instance}}")).warn(5, 15),
		lines("Late exchanges", "How long the first key that should be exchanged has been waiting.", "s",
			query(`max by (instance) (oauth_sync_late_seconds{$i})`, "{{instance}}")).warn(5, 15),
		lines("Unconfirmed writes", "Age of the oldest write that is not known to be applied: no answer came, or the database refuses it.", "s",
			query(`max by (instance) (oauth_sync_unconfirmed_seconds{$i})`, "{{instance}}")).warn(3, 15),
		lines("Decided by on_outage", "Decisions that on_outage made, share or deny, because the count could not be shared; and the instances (1) that cannot share any.", "short",
			query(`sum by (instance, outcome) (rate(oauth_ratelimit_outage_decisions_total{$i}[$__rate_interval]))`, "{{instance}} {{outcome}}"),
			query(`max by (instance) (oauth_ratelimit_outage{$i})`, "{{instance}} outage")),
		lines("Keys to write", "Dirty: waiting to be written. Due: to be written now.", "short",
			query(`sum by (instance) (oauth_sync_dirty_keys{$i})`, "{{instance}} dirty"),
			query(`sum by (instance) (oauth_sync_due_keys{$i})`, "{{instance}} due")),
		lines("Instances", "How many are alive, as each of them sees it. They should agree.", "short",
			query(`max by (instance) (oauth_sync_instances{$i})`, "{{instance}}")),
	}
}

func traffic() []Panel {
	return []Panel{
		row("Traffic to the database"),
		lines("Commands", "Commands per second by kind.", "ops",
			query(`sum by (command) (rate(oauth_sync_commands_total{$i}[$__rate_interval]))`, "{{command}}"),
			query(`sum(rate(oauth_sync_command_failures_total{$i}[$__rate_interval]))`, "failed")),
		lines("Writes by outcome", "Keys written per second.", "wps",
			query(`sum by (outcome) (rate(oauth_sync_writes_total{$i}[$__rate_interval]))`, "{{outcome}}")),
		lines("Keys per command", "More keys in one, fewer commands.", "short",
			query(`histogram_quantile(0.5, sum by (le, command) (rate(oauth_sync_bulk_size_bucket{$i}[$__rate_interval])))`, "{{command}} p50"),
			query(`histogram_quantile(0.99, sum by (le, command) (rate(oauth_sync_bulk_size_bucket{$i}[$__rate_interval])))`, "{{command}} p99")),
		lines("Time of a command", "How long the database took.", "s",
			query(`histogram_quantile(0.5, sum by (le, command) (rate(oauth_sync_bulk_duration_seconds_bucket{$i}[$__rate_interval])))`, "{{command}} p50"),
			query(`histogram_quantile(0.99, sum by (le, command) (rate(oauth_sync_bulk_duration_seconds_bucket{$i}[$__rate_interval])))`, "{{command}} p99")),
	}
}

func trouble() []Panel {
	return []Panel{
		row("Trouble"),
		lines("Conflicts and fallbacks", "A key that lost several times is written without compare-and-swap (fallback), as exactly.", "wps",
			query(`sum by (instance) (rate(oauth_sync_writes_total{$i,outcome="conflict"}[$__rate_interval]))`, "{{instance}} conflicts"),
			query(`sum by (instance) (rate(oauth_sync_writes_total{$i,outcome="fallback"}[$__rate_interval]))`, "{{instance}} fallbacks")),
		lines("Unknown and rejected", "Unknown: no answer came. Rejected: the database refuses the document.", "wps",
			query(`sum by (instance) (rate(oauth_sync_writes_total{$i,outcome="unknown"}[$__rate_interval]))`, "{{instance}} unknown"),
			query(`sum by (instance) (rate(oauth_sync_writes_total{$i,outcome="rejected"}[$__rate_interval]))`, "{{instance}} rejected")),
		lines("Foreign documents, copies and panics", "Documents that make no sense, copies of a process that ran under its ID, and panics of the syncer. All are in the log.", "short",
			query(`sum by (instance) (increase(oauth_sync_foreign_documents_total{$i}[$__rate_interval]))`, "{{instance}} foreign"),
			query(`sum by (instance) (increase(oauth_sync_panics_total{$i}[$__rate_interval]))`, "{{instance}} panics"),
			query(`sum by (instance) (increase(oauth_sync_clones_total{$i}[$__rate_interval]))`, "{{instance}} copies")),
		lines("Clock offset", "By how much the clock of the machine (wall) and that of the database (store) are ahead of process time, which counts go by. It follows none that stands alone.", "s",
			query(`max by (instance, clock) (oauth_clock_offset_seconds{$i})`, "{{instance}} {{clock}}")).signed(),
		lines("Revision of the configuration", "Instances that stay on another revision than the rest do not follow changes.", "none",
			query(`max by (instance, config) (oauth_config_revision{$i})`, "{{instance}} {{config}}")),
		lines("Counts given up", "Expired: too old to matter before they could be written. Left: what the final flush of a stopping instance could not write.", "short",
			query(`sum by (instance) (increase(oauth_sync_expired_counts_total{$i}[$__rate_interval]))`, "{{instance}} expired"),
			query(`max by (instance) (oauth_sync_final_flush_leftover{$i})`, "{{instance}} left")),
	}
}
