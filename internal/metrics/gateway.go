package metrics

// The gateway before another server's token endpoint.
var (
	gatewayRequestsInfo = Info{
		"oauth_gateway_requests_total", Counter,
		[]string{"outcome"},
		"Token requests at the gateway. Outcomes: issued and failed (the upstream answered with a token, or with something else), denied (over a limit), refused (the upstream could have read it differently), unreachable (the upstream did not answer), gone (the client hung up), unjudged (a defect, with on_error: deny), passed (the judge of another proxy let it pass, and sees no more of it).",
	}
	gatewayUnknownInfo = Info{
		"oauth_gateway_unknown_users_total", Counter,
		[]string{"reason"},
		"Tokens that count for no user, because the upstream's answer did not show whose they are, by why.",
	}
	gatewayLateInfo = Info{
		"oauth_gateway_late_total", Counter, nil,
		"Tokens of users over their limit, which only the answer showed: they count against the total of the client.",
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
)

// Gateway is the state of the gateway.
type Gateway struct {
	Requests map[string]uint64 // since the start, by outcome
	Unknown  map[string]uint64 // by reason
	Late     uint64
	Defects  uint64
	UnderWay int
	Subjects int
}

// WatchGateway exports what read returns at each scrape.
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
	})
}
