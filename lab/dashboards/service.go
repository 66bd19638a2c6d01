package dashboards

func service() Dashboard {
	return dashboard("oauth-service", "OAuth: Service",
		"Tokens, errors, latency, the store and the process.",
		nil,
		concat(serviceNumbers(), tokenCharts(), latencyCharts(), overloadCharts(), gatewayCharts(), storeCharts(), processCharts())...)
}

func serviceNumbers() []Panel {
	return []Panel{
		row("At a glance"),
		number("Tokens", "Token requests answered with a token, by the server or through a gateway.", "reqps",
			`sum(rate(oauth_token_responses_total{$i,error="none"}[$__rate_interval]) or rate(oauth_gateway_requests_total{$i,outcome=~"issued|passed"}[$__rate_interval]))`),
		number("Errors", "Share of failed token requests, without rate limits, overload and clients that disconnected.", "percentunit",
			`sum(rate(oauth_token_responses_total{$i,error!~"none|rate_limited|overloaded"}[$__rate_interval]) or rate(oauth_gateway_requests_total{$i,outcome!~"issued|passed|denied|gone"}[$__rate_interval])) / sum(rate(oauth_token_responses_total{$i}[$__rate_interval]) or rate(oauth_gateway_requests_total{$i}[$__rate_interval]))`).warn(0.05, 0.2),
		number("Server errors", "Requests answered with a 5xx status.", "reqps",
			`sum(rate(oauth_http_request_duration_seconds_count{$i,code=~"5.."}[$__rate_interval])) or vector(0)`).warn(0.001, 1),
		number("Slow tokens", "One token request in a hundred takes longer (p99). Without requests that get 503, which takes no time; at a gateway, including the upstream.", "s",
			`histogram_quantile(0.99, sum by (le) (rate(oauth_http_request_duration_seconds_bucket{$i,route="/token",code!="503"}[$__rate_interval]) or rate(oauth_gateway_request_duration_seconds_bucket{$i,outcome=~"issued|failed|passed"}[$__rate_interval])))`).warn(0.1, 0.5),
		number("Instances", "Instances that Prometheus scrapes.", "none", `count(oauth_build_info{$i})`),
		number("Loops restarted", "Panics of background loops in the time range shown; each loop was restarted.", "none",
			`sum(increase(oauth_loop_panics_total{$i}[$__range])) or vector(0)`).warn(0.001, 1),
	}
}

func tokenCharts() []Panel {
	return []Panel{
		row("Tokens"),
		lines("Tokens by grant", "Token requests answered with a token.", "reqps",
			query(`sum by (grant_type) (rate(oauth_token_responses_total{$i,error="none"}[$__rate_interval]))`, "{{grant_type}}")).stacked(),
		lines("Token errors", "Token requests answered with an error; rate_limited is 429, overloaded a 503 while the server is overloaded.", "reqps",
			query(`sum by (error) (rate(oauth_token_responses_total{$i,error!="none"}[$__rate_interval]))`, "{{error}}")),
		lines("Requests by route and status", "All HTTP requests.", "reqps",
			query(`sum by (route, code) (rate(oauth_http_request_duration_seconds_count{$i}[$__rate_interval]))`, "{{route}} {{code}}")),
		lines("Requests in progress", "Requests in progress at the moment of the scrape.", "short",
			query(`sum by (instance) (oauth_http_requests_in_flight{$i})`, "{{instance}}")),
		lines("Connections", "Open connections and HTTP/2 requests by listener, and the maximum of connections.", "short",
			query(`sum by (instance, listener) (oauth_connections{$i})`, "{{instance}} {{listener}}"),
			query(`sum by (instance, listener) (oauth_connections_streams{$i})`, "{{instance}} {{listener}} HTTP/2 requests"),
			query(`max by (instance, listener) (oauth_connections_max{$i})`, "{{instance}} {{listener}} at most")),
		lines("Connections refused", "Connections and HTTP/2 requests over the maximum, by reason. Usually 0.", "ops",
			query(`sum by (listener, outcome) (rate(oauth_connections_excess_total{$i}[$__rate_interval]))`, "{{listener}} {{outcome}}")),
		lines("Passwords hashed", "By place: a process of the lowest priority, or the server.", "ops",
			query(`sum by (place) (rate(oauth_password_hashes_total{$i}[$__rate_interval]))`, "{{place}}")).stacked(),
	}
}

func latencyCharts() []Panel {
	buckets := `sum by (le) (rate(oauth_http_request_duration_seconds_bucket{$i,route="/token",code!="503"}[$__rate_interval]))`
	quantiles := lines("Latency of /token", "Time from the request's headers to the end of the response, without requests that get 503.", "s",
		query(`histogram_quantile(0.5, `+buckets+`)`, "p50"),
		query(`histogram_quantile(0.95, `+buckets+`)`, "p95"),
		query(`histogram_quantile(0.99, `+buckets+`)`, "p99"))
	for i := range quantiles.Targets {
		quantiles.Targets[i].Exemplar = true
	}
	return []Panel{
		row("Latency"),
		quantiles,
		lines("Slow requests by route", "One request in a hundred takes longer (p99).", "s",
			query(`histogram_quantile(0.99, sum by (le, route) (rate(oauth_http_request_duration_seconds_bucket{$i}[$__rate_interval])))`, "{{route}}")),
	}
}

func overloadCharts() []Panel {
	return []Panel{
		row("Overload"),
		lines("Requests refused by class", "Requests that get 503 because an instance is overloaded, the least critical first; in dry-run, that would. Usually 0.", "reqps",
			query(`sum by (class) (rate(oauth_overload_requests_total{$i,outcome="shed"}[$__rate_interval]))`, "{{class}}"),
			query(`sum by (class) (rate(oauth_overload_requests_total{$i,outcome="would_shed"}[$__rate_interval]))`, "{{class}} would be"),
			query(`sum(rate(oauth_overload_requests_total{$i,outcome="abandoned"}[$__rate_interval]))`, "callers that disconnected")).sized(8, 8),
		lines("Wait for the processor", "How long work waits for a processor, and overload.target (20 ms by default).", "s",
			query(`max by (instance) (oauth_overload_wait_seconds{$i})`, "{{instance}}")).sized(8, 8),
		lines("Share refused", "Share of all requests; in dry-run, that would be refused. Nearly everything: 1 while the most critical requests are refused too.", "percentunit",
			query(`max by (instance) (oauth_overload_refused_ratio{$i})`, "{{instance}}"),
			query(`max by (instance) (oauth_overload_useless_seconds{$i} > bool 0)`, "{{instance}} nearly everything")).sized(8, 8),
		lines("Refused up to", "Highest criticality that is refused in part: 1 sheddable, 2 sheddable_plus, 3 critical, 4 critical_plus. Modes: instances that refuse, and instances in dry-run.", "none",
			query(`max by (instance) (oauth_overload_refused_criticality{$i})`, "{{instance}}"),
			query(`sum by (mode) (oauth_overload_mode{$i,mode!="off"})`, "instances in {{mode}}")).sized(8, 8),
		lines("Work in progress", "Admitted requests, and store calls: in progress, queued, and the maximum.", "short",
			query(`sum by (instance) (oauth_overload_in_flight{$i})`, "{{instance}} requests"),
			query(`sum by (instance) (oauth_store_queue_in_flight{$i})`, "{{instance}} store calls"),
			query(`sum by (instance) (oauth_store_queue_waiting{$i})`, "{{instance}} store calls waiting"),
			query(`sum by (instance) (oauth_store_queue_limit{$i})`, "{{instance}} store calls at most")).sized(8, 8),
		lines("Store calls refused", "Store calls that were not made: shed (503), would_shed (dry-run), or abandoned by the caller. Usually 0.", "ops",
			query(`sum by (criticality, outcome) (rate(oauth_store_queue_requests_total{$i,outcome!="admitted"}[$__rate_interval]))`, "{{criticality}} {{outcome}}")).sized(8, 8),
	}
}

func gatewayCharts() []Panel {
	answered := `sum by (le) (rate(oauth_gateway_request_duration_seconds_bucket{$i,outcome=~"issued|failed|passed"}[$__rate_interval]))`
	upstream := `sum by (le) (rate(oauth_gateway_upstream_duration_seconds_bucket{$i,request="token",code!="none"}[$__rate_interval]))`
	return []Panel{
		row("Gateway"),
		lines("Token requests by outcome", "Token requests at a gateway. Empty for a server.", "reqps",
			query(`sum by (outcome) (rate(oauth_gateway_requests_total{$i}[$__rate_interval]))`, "{{outcome}}")).sized(8, 8),
		lines("Latency of token requests", "Time from the request's headers to the end of the response, and the upstream's part of it.", "s",
			query(`histogram_quantile(0.5, `+answered+`)`, "p50"),
			query(`histogram_quantile(0.99, `+answered+`)`, "p99"),
			query(`histogram_quantile(0.5, `+upstream+`)`, "p50 of the upstream"),
			query(`histogram_quantile(0.99, `+upstream+`)`, "p99 of the upstream")).sized(8, 8),
		lines("Responses of the upstream", "By status. None: the upstream cannot be reached. Timeout: over 30 seconds. Gone: the client disconnected. One line shows all other failed requests.", "reqps",
			query(`sum by (code) (rate(oauth_gateway_upstream_duration_seconds_count{$i,request="token"}[$__rate_interval]))`, "token {{code}}"),
			query(`sum(rate(oauth_gateway_upstream_duration_seconds_count{$i,request="other",code=~"5..|none|timeout"}[$__rate_interval])) or vector(0)`, "other requests that failed")).sized(8, 8),
		lines("Tokens with an unknown user", "Tokens that count for no user, by reason; tokens over a limit, because only the response showed the user; and requests that the gateway failed to decide because of a defect.", "reqps",
			query(`sum by (reason) (rate(oauth_gateway_unknown_users_total{$i}[$__rate_interval]))`, "{{reason}}"),
			query(`sum(rate(oauth_gateway_late_total{$i}[$__rate_interval]))`, "over their limit"),
			query(`sum(rate(oauth_gateway_defects_total{$i}[$__rate_interval]))`, "defects")).sized(8, 8),
		lines("At the upstream", "Token requests that the upstream has not answered yet.", "short",
			query(`sum by (instance) (oauth_gateway_under_way{$i})`, "{{instance}}")).sized(8, 8),
		lines("Known users", "Refresh tokens and usernames with a known user, and those that are not stored yet. The latter are usually 0.", "short",
			query(`sum by (instance) (oauth_gateway_subjects{$i})`, "{{instance}} known"),
			query(`sum by (instance) (oauth_gateway_subject_writes_waiting{$i})`, "{{instance}} waiting")).sized(8, 8),
		lines("Users of refresh tokens in the store", "Lookups of refresh tokens that were not in memory, by outcome, and lost writes. The latter are usually 0.", "ops",
			query(`sum by (outcome) (rate(oauth_gateway_subject_reads_total{$i}[$__rate_interval]))`, "{{outcome}}"),
			query(`sum by (outcome) (rate(oauth_gateway_subject_writes_total{$i}[$__rate_interval]))`, "writes {{outcome}}")).sized(8, 8),
	}
}

func storeCharts() []Panel {
	return []Panel{
		row("Store"),
		lines("Store calls per request", "Mean by route. The rate limiter adds none: it decides in memory.", "short",
			query(`sum by (route) (rate(oauth_http_request_db_calls_sum{$i}[$__rate_interval])) / sum by (route) (rate(oauth_http_request_db_calls_count{$i}[$__rate_interval]))`, "{{route}}")).sized(8, 8),
		lines("Slow store operations", "One operation in a hundred takes longer (p99).", "s",
			query(`histogram_quantile(0.99, sum by (le, operation) (rate(oauth_store_operation_duration_seconds_bucket{$i}[$__rate_interval])))`, "{{operation}}")).sized(8, 8),
		lines("Store errors", "Failed store operations. Usually 0.", "ops",
			query(`sum by (operation) (rate(oauth_store_errors_total{$i}[$__rate_interval]))`, "{{operation}}")).sized(8, 8),
	}
}

func processCharts() []Panel {
	return []Panel{
		row("Process"),
		lines("CPU", "Cores in use.", "short",
			query(`rate(process_cpu_seconds_total{$i}[$__rate_interval]) and on (job, instance) oauth_build_info{$i}`, "{{instance}}")).sized(8, 8),
		lines("Memory", "Resident memory, and the Go heap within it.", "bytes",
			query(`process_resident_memory_bytes{$i} and on (job, instance) oauth_build_info{$i}`, "{{instance}} resident"),
			query(`go_memstats_heap_alloc_bytes{$i} and on (job, instance) oauth_build_info{$i}`, "{{instance}} heap")).sized(8, 8),
		lines("Goroutines", "A count that keeps growing is a leak.", "short",
			query(`go_goroutines{$i} and on (job, instance) oauth_build_info{$i}`, "{{instance}}")).sized(8, 8),
		lines("Garbage collection", "Longest pause.", "s",
			query(`go_gc_duration_seconds{$i,quantile=~"1|1.0"} and on (job, instance) oauth_build_info{$i}`, "{{instance}}")).sized(8, 8),
		lines("Age of the configuration", "Time since clients and policies were last known to be current.", "s",
			query(`max by (instance, config) (oauth_config_age_seconds{$i})`, "{{instance}} {{config}}")).sized(8, 8).warn(10, 60),
		table("Builds", "Version of each running instance.",
			column{"Up", "none", now(`max by (instance, version, revision, goversion) (oauth_build_info{$i})`)}).sized(8, 8),
	}
}
