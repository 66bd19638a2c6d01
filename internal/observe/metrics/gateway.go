package metrics

import "time"

// The gateway in front of another server's token endpoint.
var (
	gatewayRequestsInfo = Info{
		"oauth_gateway_requests_total", Counter,
		[]string{"outcome"},
		"Token requests at the gateway. Outcomes: issued and failed (the upstream answered with a token, or with something else), denied (over a limit), crowded (429, because too many requests with credentials that have got no token yet are under way), refused (for another host, or the upstream could have read it differently), unreachable (the upstream did not answer), gone (the client hung up; a token that the upstream made all the same counts towards the limits), unjudged (a defect, with on_error: deny), passed (the judge of another proxy let it pass, and sees no more of it).",
	}
	gatewayUnknownInfo = Info{
		"oauth_gateway_unknown_users_total", Counter,
		[]string{"reason"},
		"Tokens whose user neither the upstream's answer nor its introspection shows, by why. They count for no user, or for the username of a password grant.",
	}
	gatewayLateInfo = Info{
		"oauth_gateway_late_total", Counter, nil,
		"Tokens that were issued over a limit: of users whom only the answer showed, or with credentials that had got no token before. They count against the total of the client.",
	}
	gatewayDefectsInfo = Info{
		"oauth_gateway_defects_total", Counter, nil,
		"Requests that the gateway failed to judge. Any is a defect; on_error says what became of them.",
	}
	gatewayUnderWayInfo = Info{
		"oauth_gateway_under_way", Gauge, nil,
		"Token requests that the upstream has not answered.",
	}
	gatewaySubjectsInfo = Info{
		"oauth_gateway_subjects", Gauge, nil,
		"Refresh tokens and usernames of which the gateway knows the user.",
	}
	gatewayReadsInfo = Info{
		"oauth_gateway_subject_reads_total", Counter,
		[]string{"outcome"},
		"Refresh tokens that the gateway did not have in memory. Outcomes: found (their user was in the store), unknown (it was not), failed (the store failed, or took longer than 100 ms), skipped (the store was not asked: too many reads were under way, too many of that address found nothing, too many addresses had asked, or it had just failed).",
	}
	gatewayWritesInfo = Info{
		"oauth_gateway_subject_writes_total", Counter,
		[]string{"outcome"},
		"Users of refresh tokens for the store. Outcomes: stored, dropped (too many waited), given_up (the store failed for five minutes).",
	}
	gatewayWritesWaitingInfo = Info{
		"oauth_gateway_subject_writes_waiting", Gauge, nil,
		"Users of refresh tokens that are not stored yet.",
	}
)

// The number of series is bounded by the outcomes, and by the statuses of one upstream. There is no
// client_id label, because a histogram for each client would be more series than everything else
// together.
var (
	gatewayDurationInfo = Info{
		"oauth_gateway_request_duration_seconds", Histogram,
		[]string{"outcome"},
		"Time from the headers of a token request at the gateway to the end of its answer, the upstream included; at the judge, of a question. Outcomes as in oauth_gateway_requests_total. Native and classic buckets.",
	}
	gatewayUpstreamInfo = Info{
		"oauth_gateway_upstream_duration_seconds", Histogram,
		[]string{"request", "code"},
		"Time that the upstream took for an answer. Request: token (to the end of the answer) or other (to its headers). Code: the status, or none (it cannot be reached, or closed the connection), timeout (30 seconds), gone (the client hung up before). Native and classic buckets.",
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

// Gateway is the state of the gateway.
type Gateway struct {
	Requests map[string]uint64 // since the start, by outcome
	Unknown  map[string]uint64 // by reason
	Late     uint64
	Defects  uint64
	UnderWay int
	Subjects int
	// Shared is the state of sharing users through the store. Nil: they are not shared.
	Shared *GatewayShared
}

// GatewayShared is the state of sharing the users of refresh tokens.
type GatewayShared struct {
	Reads, Writes map[string]uint64 // by outcome
	Waiting       int               // writes
}

// WatchGateway exports the result of read at each scrape.
func (m *Metrics) WatchGateway(read func() Gateway) {
	m.pull.watch("gateway", func(emit emit) {
		now := read()
		for outcome, n := range now.Requests {
			emit(gatewayRequestsInfo, float64(n), outcome)
		}
		for reason, n := range now.Unknown {
			emit(gatewayUnknownInfo, float64(n), reason)
		}
		emit(gatewayLateInfo, float64(now.Late))
		emit(gatewayDefectsInfo, float64(now.Defects))
		emit(gatewayUnderWayInfo, float64(now.UnderWay))
		emit(gatewaySubjectsInfo, float64(now.Subjects))
		if now.Shared == nil {
			return
		}
		for outcome, n := range now.Shared.Reads {
			emit(gatewayReadsInfo, float64(n), outcome)
		}
		for outcome, n := range now.Shared.Writes {
			emit(gatewayWritesInfo, float64(n), outcome)
		}
		emit(gatewayWritesWaitingInfo, float64(now.Shared.Waiting))
	})
}
