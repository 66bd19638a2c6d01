package metrics

import (
	"time"

	"oauth-server/internal/gateway"
	"oauth-server/internal/gateway/sharing"
)

// The gateway in front of another server's token endpoint.
var (
	gatewayRequestsInfo = Info{
		"oauth_gateway_requests_total", Counter,
		[]string{"outcome"},
		"Token requests at the gateway. Outcomes: issued and failed (the upstream answered with or without a token), denied (over a limit), crowded (429: too many requests with unproven credentials are in progress), refused (for another host, or ambiguous), unreachable (no answer from the upstream), gone (the client disconnected; a token issued all the same counts), unjudged (a defect, with on_error: deny), passed (a proxy asked, and the request may pass).",
	}
	gatewayUnknownInfo = Info{
		"oauth_gateway_unknown_users_total", Counter,
		[]string{"reason"},
		"Tokens with an unknown user: neither the upstream's response nor introspection shows it. They count for no user, or for the username of a password grant.",
	}
	gatewayLateInfo = Info{
		"oauth_gateway_late_total", Counter, nil,
		"Tokens issued over a limit, because only the response showed the user, or because the credentials were unproven. They count towards the client's total.",
	}
	gatewayDefectsInfo = Info{
		"oauth_gateway_defects_total", Counter, nil,
		"Requests that the gateway failed to decide because of a defect. on_error decided about them.",
	}
	gatewayUnderWayInfo = Info{
		"oauth_gateway_under_way", Gauge, nil,
		"Token requests that the upstream has not answered yet.",
	}
	gatewaySubjectsInfo = Info{
		"oauth_gateway_subjects", Gauge, nil,
		"Refresh tokens and usernames with a known user.",
	}
	gatewayReadsInfo = Info{
		"oauth_gateway_subject_reads_total", Counter,
		[]string{"outcome"},
		"Lookups of refresh tokens that were not in memory. Outcomes: found (in the store), unknown (not there), failed (an error, or over 100 ms), skipped (not looked up: too many reads in progress, too many unknown tokens from the address, too many addresses, or the store had just failed).",
	}
	gatewayWritesInfo = Info{
		"oauth_gateway_subject_writes_total", Counter,
		[]string{"outcome"},
		"Writes of refresh tokens with their users to the store. Outcomes: stored, dropped (the queue was full), given_up (the store failed for five minutes).",
	}
	gatewayWritesWaitingInfo = Info{
		"oauth_gateway_subject_writes_waiting", Gauge, nil,
		"Refresh tokens with users that are not stored yet.",
	}
)

// The number of series is bounded by the outcomes, and by the statuses of one upstream. There is no
// client_id label, because a histogram for each client would be more series than everything else
// together.
var (
	gatewayDurationInfo = Info{
		"oauth_gateway_request_duration_seconds", Histogram,
		[]string{"outcome"},
		"Time from the headers of a token request to the end of its response, including the upstream; with --judge, the time for an answer. Outcomes as in oauth_gateway_requests_total.",
	}
	gatewayUpstreamInfo = Info{
		"oauth_gateway_upstream_duration_seconds", Histogram,
		[]string{"request", "code"},
		"Response time of the upstream. Request: token (to the end of the response) or other (to its headers). Code: the status, or none (unreachable, or the connection was closed), timeout (30 seconds), gone (the client disconnected).",
	}
)

// GatewayAnswered observes how long the gateway took for a token request with this outcome.
func (m *Metrics) GatewayAnswered(outcome string, took time.Duration) {
	m.gateway.WithLabelValues(outcome).Observe(took.Seconds())
}

// ExpectUpstream exports a zero count of token requests without an answer, so the first one raises
// the rate.
func (m *Metrics) ExpectUpstream() {
	m.upstream.WithLabelValues("token", "none")
	m.upstream.WithLabelValues("token", "timeout")
}

// GatewayExchanged observes how long the upstream took for an answer with this status. Without an
// answer, status is 0 and missing is the reason.
func (m *Metrics) GatewayExchanged(token bool, status int, missing string, took time.Duration) {
	request, code := "other", missing
	if token {
		request = "token"
	}
	if missing == "" {
		code = codeLabel(status)
	}
	m.upstream.WithLabelValues(request, code).Observe(took.Seconds())
}

// WatchGateway exports the result of read at each scrape, and that of shared, if not nil.
func (m *Metrics) WatchGateway(read func() gateway.Stats, shared func() sharing.Stats) {
	m.pull.watch("gateway", func(emit emit) {
		now := read()
		for outcome, n := range now.Requests {
			emit(gatewayRequestsInfo, float64(n), gateway.Outcome(outcome).String())
		}
		for reason, n := range now.Unknown {
			emit(gatewayUnknownInfo, float64(n), reason.String())
		}
		emit(gatewayLateInfo, float64(now.Late))
		emit(gatewayDefectsInfo, float64(now.Defects))
		emit(gatewayUnderWayInfo, float64(now.UnderWay))
		emit(gatewaySubjectsInfo, float64(now.Subjects))
		if shared != nil {
			emitShared(emit, shared())
		}
	})
}

func emitShared(emit emit, now sharing.Stats) {
	emit(gatewayReadsInfo, float64(now.Found), "found")
	emit(gatewayReadsInfo, float64(now.Unknown), "unknown")
	emit(gatewayReadsInfo, float64(now.Failed), "failed")
	emit(gatewayReadsInfo, float64(now.Skipped), "skipped")
	emit(gatewayWritesInfo, float64(now.Stored), "stored")
	emit(gatewayWritesInfo, float64(now.Dropped), "dropped")
	emit(gatewayWritesInfo, float64(now.GivenUp), "given_up")
	emit(gatewayWritesWaitingInfo, float64(now.Waiting))
}
