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
		number("Errors", "Share of token requests that failed for another reason than a rate limit, an overload, or a client that hung up.", "percentunit",
			`sum(rate(oauth_token_responses_total{$i,error!~"none|rate_limited|overloaded"}[$__rate_interval]) or rate(oauth_gateway_requests_total{$i,outcome!~"issued|passed|denied|gone"}[$__rate_interval])) / sum(rate(oauth_token_responses_total{$i}[$__rate_interval]) or rate(oauth_gateway_requests_total{$i}[$__rate_interval]))`).warn(0.05, 0.2),
		number("Server errors", "Requests answered with a 5xx status.", "reqps",
			`sum(rate(oauth_http_request_duration_seconds_count{$i,code=~"5.."}[$__rate_interval])) or vector(0)`).warn(0.001, 1),
		number("Slow tokens", "One token request in a hundred takes longer (p99). Without what is answered with 503, which takes no time; at a gateway, with the time of its upstream.", "s",
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
		lines("Requests under way", "Requests being answered at the moment of the scrape.", "short",
			query(`sum by (instance) (oauth_http_requests_in_flight{$i})`, "{{instance}}")),
		lines("Connections", "Open connections and requests of HTTP/2 by listener, and how many connections may be open.", "short",
			query(`sum by (instance, listener) (oauth_connections{$i})`, "{{instance}} {{listener}}"),
			query(`sum by (instance, listener) (oauth_connections_streams{$i})`, "{{instance}} {{listener}} HTTP/2 requests"),
			query(`max by (instance, listener) (oauth_connections_max{$i})`, "{{instance}} {{listener}} at most")),
		lines("Connections refused", "Connections and requests of HTTP/2 beyond that, and why. Usually 0.", "ops",
			query(`sum by (listener, outcome) (rate(oauth_connections_excess_total{$i}[$__rate_interval]))`, "{{listener}} {{outcome}}")),
		lines("Passwords hashed", "Where: in a process of the lowest priority, or in the server.", "ops",
			query(`sum by (place) (rate(oauth_password_hashes_total{$i}[$__rate_interval]))`, "{{place}}")).stacked(),
	}
}

func latencyCharts() []Panel {
	buckets := `sum by (le) (rate(oauth_http_request_duration_seconds_bucket{$i,route="/token",code!="503"}[$__rate_interval]))`
	quantiles := lines("Latency of /token", "Time from the request's headers to the end of the answer, without what is answered with 503.", "s",
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
		lines("Requests refused by class", "Refused with 503 because an instance is overloaded, the least critical first. Would be: in dry-run. Usually 0.", "reqps",
			query(`sum by (class) (rate(oauth_overload_requests_total{$i,outcome="shed"}[$__rate_interval]))`, "{{class}}"),
			query(`sum by (class) (rate(oauth_overload_requests_total{$i,outcome="would_shed"}[$__rate_interval]))`, "{{class}} would be"),
			query(`sum(rate(oauth_overload_requests_total{$i,outcome="abandoned"}[$__rate_interval]))`, "callers that hung up")).sized(8, 8),
		lines("Wait for the processor", "How long work waits, compared with overload.target (5 ms unless set).", "s",
			query(`max by (instance) (oauth_overload_wait_seconds{$i})`, "{{instance}}")).sized(8, 8),
		lines("Share refused", "Of all requests, because work waits; in dry-run, that would be. Nearly everything: 1 while the most critical requests are refused too, so that the instance is of no use.", "percentunit",
			query(`max by (instance) (oauth_overload_refused_ratio{$i})`, "{{instance}}"),
			query(`max by (instance) (oauth_overload_useless_seconds{$i} > bool 0)`, "{{instance}} nearly everything")).sized(8, 8),
		lines("Refused up to", "Highest criticality of which requests are refused: 1 sheddable, 2 sheddable_plus, 3 critical, 4 critical_plus. Modes: instances that refuse, and those in dry-run.", "none",
			query(`max by (instance) (oauth_overload_refused_criticality{$i})`, "{{instance}}"),
			query(`sum by (mode) (oauth_overload_mode{$i,mode!="off"})`, "instances in {{mode}}")).sized(8, 8),
		lines("Work under way", "Requests that were admitted, and calls of the store in progress, waiting for a place, and at most.", "short",
			query(`sum by (instance) (oauth_overload_in_flight{$i})`, "{{instance}} requests"),
			query(`sum by (instance) (oauth_store_queue_in_flight{$i})`, "{{instance}} store calls"),
			query(`sum by (instance) (oauth_store_queue_waiting{$i})`, "{{instance}} store calls waiting"),
			query(`sum by (instance) (oauth_store_queue_limit{$i})`, "{{instance}} store calls at most")).sized(8, 8),
		lines("Store calls refused", "What came of calls of requests to the store that were not admitted: shed with 503, in dry-run would_shed, or abandoned by their caller. Usually 0.", "ops",
			query(`sum by (criticality, outcome) (rate(oauth_store_queue_requests_total{$i,outcome!="admitted"}[$__rate_interval]))`, "{{criticality}} {{outcome}}")).sized(8, 8),
	}
}

func gatewayCharts() []Panel {
	answered := `sum by (le) (rate(oauth_gateway_request_duration_seconds_bucket{$i,outcome=~"issued|failed|passed"}[$__rate_interval]))`
	upstream := `sum by (le) (rate(oauth_gateway_upstream_duration_seconds_bucket{$i,request="token",code!="none"}[$__rate_interval]))`
	return []Panel{
		row("Gateway"),
		lines("Token requests by outcome", "What became of token requests at the gateway before another server. Empty where there is none.", "reqps",
			query(`sum by (outcome) (rate(oauth_gateway_requests_total{$i}[$__rate_interval]))`, "{{outcome}}")).sized(8, 8),
		lines("Latency of token requests", "Time from the request's headers to the end of the answer, and the part of it that the upstream took.", "s",
			query(`histogram_quantile(0.5, `+answered+`)`, "p50"),
			query(`histogram_quantile(0.99, `+answered+`)`, "p99"),
			query(`histogram_quantile(0.5, `+upstream+`)`, "p50 of the upstream"),
			query(`histogram_quantile(0.99, `+upstream+`)`, "p99 of the upstream")).sized(8, 8),
		lines("Answers of the upstream", "By status. None: it cannot be reached. Timeout: it takes over 30 seconds. Gone: the client hung up before the answer. One line shows all other requests that failed.", "reqps",
			query(`sum by (code) (rate(oauth_gateway_upstream_duration_seconds_count{$i,request="token"}[$__rate_interval]))`, "token {{code}}"),
			query(`sum(rate(oauth_gateway_upstream_duration_seconds_count{$i,request="other",code=~"5..|none|timeout"}[$__rate_interval])) or vector(0)`, "other requests that failed")).sized(8, 8),
		lines("Tokens of no user", "Tokens that count for no user, because the answer does not show whose they are, by why; and of users over their limit, which the answer showed. Defects: requests that could not be judged.", "reqps",
			query(`sum by (reason) (rate(oauth_gateway_unknown_users_total{$i}[$__rate_interval]))`, "{{reason}}"),
			query(`sum(rate(oauth_gateway_late_total{$i}[$__rate_interval]))`, "over their limit"),
			query(`sum(rate(oauth_gateway_defects_total{$i}[$__rate_interval]))`, "defects")).sized(8, 8),
		lines("At the upstream", "Token requests that it has not answered.", "short",
			query(`sum by (instance) (oauth_gateway_under_way{$i})`, "{{instance}}")).sized(8, 8),
		lines("Known users", "Refresh tokens and usernames that lead to a user, and those of them that wait to be stored: usually 0.", "short",
			query(`sum by (instance) (oauth_gateway_subjects{$i})`, "{{instance}} known"),
			query(`sum by (instance) (oauth_gateway_subject_writes_waiting{$i})`, "{{instance}} waiting")).sized(8, 8),
		lines("Users of refresh tokens in the store", "Refresh tokens that the gateway did not have in memory: those of which the store had the user, or not, and those of which it was not asked or failed. Writes that were lost: usually 0.", "ops",
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
		lines("Store errors", "Operations that the store failed to answer. Usually 0.", "ops",
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
		lines("Age of the configuration", "Time since clients and policies were last confirmed to be the newest.", "s",
			query(`max by (instance, config) (oauth_config_age_seconds{$i})`, "{{instance}} {{config}}")).sized(8, 8).warn(10, 60),
		table("Builds", "Version of each running instance.",
			column{"Up", "none", now(`max by (instance, version, revision, goversion) (oauth_build_info{$i})`)}).sized(8, 8),
	}
}
