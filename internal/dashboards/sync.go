package dashboards

func syncing() Dashboard {
	return dashboard("oauth-sync", "OAuth: Sync",
		"How the instances share their counts through the database.",
		[]Variable{datasourceVariable(), instanceChoice()},
		concat(syncNumbers(), staleness(), traffic(), trouble())...)
}

func syncNumbers() []Panel {
	return []Panel{
		row("At a glance"),
		number("Oldest g", "How old the oldest shared count is that a decision may rest on.", "s",
			`max(oauth_sync_g_age_seconds{$i})`).warn(5, 15),
		number("Conflicts", "Share of writes that lost against another instance and were repeated.", "percentunit",
			`sum(rate(oauth_sync_writes_total{$i,outcome="conflict"}[$__rate_interval])) / (sum(rate(oauth_sync_writes_total{$i}[$__rate_interval])) > 0) or vector(0)`).warn(0.3, 0.6),
		number("Database silent", "For how long the database has not answered some instance.", "s",
			`max(oauth_sync_degraded_seconds{$i})`).warn(1, 30),
		number("Drift", "Documents found with less than was written. This must be 0, always.", "none",
			`sum(increase(oauth_sync_drift_total{$i}[$__range]))`).warn(0.001, 0.5),
		number("Clock offset", "Largest difference to the database's clock.", "s",
			`max(abs(oauth_clock_offset_seconds{$i}))`).warn(0.5, 2),
		number("Commands per admission", "Database commands for each request that the limiter admitted.", "none",
			`sum(rate(oauth_sync_commands_total{$i}[$__rate_interval])) / (sum(rate(oauth_ratelimit_decisions_total{$i,`+admitted+`}[$__rate_interval])) > 0) or vector(0)`),
	}
}

func staleness() []Panel {
	return []Panel{
		row("Staleness"),
		lines("Age of g", "Age of the oldest g among the active keys.", "s",
			query(`max by (instance) (oauth_sync_g_age_seconds{$i})`, "{{instance}}")).warn(5, 15),
		lines("Late writes", "How long the first key that should be written has been waiting.", "s",
			query(`max by (instance) (oauth_sync_late_seconds{$i})`, "{{instance}}")).warn(5, 15),
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
		lines("Foreign documents and panics", "Documents that make no sense, and panics of the syncer. Both are in the log.", "short",
			query(`sum by (instance) (increase(oauth_sync_foreign_documents_total{$i}[$__rate_interval]))`, "{{instance}} foreign"),
			query(`sum by (instance) (increase(oauth_sync_panics_total{$i}[$__rate_interval]))`, "{{instance}} panics")),
		lines("Clock offset", "Clock of the database minus that of the instance; decisions correct for it.", "s",
			query(`max by (instance) (oauth_clock_offset_seconds{$i})`, "{{instance}}")).signed(),
		lines("Revision of the configuration", "Instances that stay on another revision than the rest do not follow changes.", "none",
			query(`max by (instance, config) (oauth_config_revision{$i})`, "{{instance}} {{config}}")),
		lines("Counts given up", "Expired: too old to matter before they could be written. Left: what the final flush of a stopping instance could not write.", "short",
			query(`sum by (instance) (increase(oauth_sync_expired_counts_total{$i}[$__rate_interval]))`, "{{instance}} expired"),
			query(`max by (instance) (oauth_sync_final_flush_leftover{$i})`, "{{instance}} left")),
	}
}
