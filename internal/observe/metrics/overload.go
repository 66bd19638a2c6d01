package metrics

import (
	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
)

// Overload control: the shedder in front of the requests, and the queue in front of the store.
var (
	overloadRequestsInfo = Info{
		"oauth_overload_requests_total", Counter,
		[]string{"class", "outcome"},
		"Requests at overload control. Class: the grant_type of a token request, revocation, introspection, page or sign_in. Outcomes: admitted, shed (503; a sign-in or password grant also later, if no processor is free for its password), would_shed (dry-run), abandoned (the caller disconnected during an overload).",
	}
	overloadModeInfo = Info{
		"oauth_overload_mode", Gauge,
		[]string{"mode"},
		"1 for the mode of overload control: enforce, dry_run or off.",
	}
	overloadWaitInfo = Info{
		"oauth_overload_wait_seconds", Gauge, nil,
		"How long work waits for a processor, without bursts. It is compared with overload.target.",
	}
	overloadRefusedInfo = Info{
		"oauth_overload_refused_ratio", Gauge, nil,
		"Share of requests that are refused at the moment; in dry-run, that would be refused.",
	}
	overloadUpToInfo = Info{
		"oauth_overload_refused_criticality", Gauge, nil,
		"Highest criticality that is refused in part, or would be in dry-run: 0 none, 1 sheddable, 2 sheddable_plus, 3 critical, 4 critical_plus.",
	}
	overloadUselessInfo = Info{
		"oauth_overload_useless_seconds", Gauge, nil,
		"How long nearly all requests have been refused, including the most critical ones; 0 if that is not so.",
	}
	overloadInFlightInfo = Info{
		"oauth_overload_in_flight", Gauge, nil,
		"Admitted requests in progress, without those that wait for the store.",
	}
	storeQueueLimitInfo = Info{
		"oauth_store_queue_limit", Gauge, nil,
		"Calls to the store at once that are allowed now. The limit adapts to the store, up to its connections.",
	}
	storeQueueInFlightInfo = Info{
		"oauth_store_queue_in_flight", Gauge, nil,
		"Calls in progress at the store.",
	}
	storeQueueWaitingInfo = Info{
		"oauth_store_queue_waiting", Gauge, nil,
		"Calls to the store that are queued.",
	}
	storeQueueRequestsInfo = Info{
		"oauth_store_queue_requests_total", Counter,
		[]string{"criticality", "outcome"},
		"Calls to the store by requests. Criticality: sheddable (also before the limiter has decided), sheddable_plus, critical or critical_plus. Outcomes: admitted, shed (503), would_shed (dry-run), abandoned (the caller disconnected while it was queued).",
	}
)

// Overloaded is the error, in oauth_token_responses_total, of a token request that was refused
// because the server is overloaded.
const Overloaded = "overloaded"

// WatchOverload exports the result of read at each scrape.
func (m *Metrics) WatchOverload(read func() overload.Stats) {
	m.pull.watch("overload", func(emit emit) {
		now := read()
		for c := range overload.Class(overload.Classes) {
			emitOutcomes(emit, overloadRequestsInfo, now.Requests[c], c.String())
		}
		for _, mode := range []ratelimit.Mode{ratelimit.Enforce, ratelimit.DryRun, ratelimit.Off} {
			emit(overloadModeInfo, truth(mode == now.Mode), string(mode))
		}
		emit(overloadWaitInfo, now.Wait.Seconds())
		emit(overloadRefusedInfo, now.Refused)
		emit(overloadUpToInfo, float64(now.UpTo))
		emit(overloadUselessInfo, now.Useless.Seconds())
		emit(overloadInFlightInfo, float64(now.InFlight))
	})
}

// WatchStoreQueue exports the result of read at each scrape.
func (m *Metrics) WatchStoreQueue(read func() storequeue.Stats) {
	m.pull.watch("store queue", func(emit emit) {
		now := read()
		emit(storeQueueLimitInfo, float64(now.Limit))
		emit(storeQueueInFlightInfo, float64(now.InFlight))
		emit(storeQueueWaitingInfo, float64(now.Queued))
		for i, counts := range now.Calls {
			emitOutcomes(emit, storeQueueRequestsInfo, counts, (ratelimit.Sheddable + ratelimit.Criticality(i)).String())
		}
	})
}

// emitOutcomes exports a count of each outcome, with the outcome as the last label.
func emitOutcomes(emit emit, i Info, counts [overload.Outcomes]uint64, labels ...string) {
	for o := range overload.Outcome(overload.Outcomes) {
		emit(i, float64(counts[o]), append(labels[:len(labels):len(labels)], o.String())...)
	}
}
