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
		"Requests that admission control decided. Class: the grant_type of a token request, revocation, introspection, page or sign_in. Outcomes: admitted, shed (refused with 503; a sign-in or password grant also later, if the server leaves no processor for its password), would_shed (dry-run), abandoned (while something is refused or work waits longer than overload.target, by a caller that has hung up).",
	}
	overloadModeInfo = Info{
		"oauth_overload_mode", Gauge,
		[]string{"mode"},
		"1 for the mode of overload control: enforce, dry_run or off.",
	}
	overloadWaitInfo = Info{
		"oauth_overload_wait_seconds", Gauge, nil,
		"How long work waits for the processor, bursts left out: what overload.target is compared with.",
	}
	overloadRefusedInfo = Info{
		"oauth_overload_refused_ratio", Gauge, nil,
		"Share of requests that are refused at the moment because work waits; in dry-run, that would be.",
	}
	overloadUpToInfo = Info{
		"oauth_overload_refused_criticality", Gauge, nil,
		"Highest criticality of which some requests are refused, or in dry-run would be: 0 none, 1 sheddable, 2 sheddable_plus, 3 critical, 4 critical_plus.",
	}
	overloadUselessInfo = Info{
		"oauth_overload_useless_seconds", Gauge, nil,
		"How long nearly all requests have been refused, the most critical ones included; 0 if they are not.",
	}
	overloadInFlightInfo = Info{
		"oauth_overload_in_flight", Gauge, nil,
		"Requests that were admitted and are being worked on, without those that are at the store or wait for it.",
	}
	storeQueueLimitInfo = Info{
		"oauth_store_queue_limit", Gauge, nil,
		"Calls of requests to the store at once, as many as it gains from now; at most as the connections allow.",
	}
	storeQueueInFlightInfo = Info{
		"oauth_store_queue_in_flight", Gauge, nil,
		"Calls of requests that the store is working on.",
	}
	storeQueueWaitingInfo = Info{
		"oauth_store_queue_waiting", Gauge, nil,
		"Calls of requests that wait for a place.",
	}
	storeQueueRequestsInfo = Info{
		"oauth_store_queue_requests_total", Counter,
		[]string{"criticality", "outcome"},
		"Calls of requests to the store. Criticality: sheddable, sheddable_plus, critical or critical_plus; sheddable too before the limiter was asked. Outcomes: admitted, shed (refused with 503), would_shed (dry-run), abandoned (the caller hung up while it waited).",
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
