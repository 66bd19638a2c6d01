package metrics

import (
	"oauth-server/internal/admission"
	"oauth-server/internal/ratelimit"
)

// Overloaded is the error, in oauth_token_responses_total, of a token request that was refused because the server is
// overloaded.
const Overloaded = "overloaded"

// WatchOverload exports what read returns at each scrape.
func (m *Metrics) WatchOverload(read func() admission.Stats) {
	m.pull.watch("overload", func(emit emit) {
		now := read()
		for c := range admission.Class(admission.Classes) {
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

// StoreLane is the state of the lane that calls of the store pass.
type StoreLane struct {
	Limit    int // of calls at once
	InFlight int
	Waiting  int
	Requests [admission.Outcomes]uint64 // since the start
}

// WatchStoreLane exports what read returns at each scrape.
func (m *Metrics) WatchStoreLane(read func() StoreLane) {
	m.pull.watch("store lane", func(emit emit) {
		now := read()
		emit(laneLimitInfo, float64(now.Limit))
		emit(laneInFlightInfo, float64(now.InFlight))
		emit(laneWaitingInfo, float64(now.Waiting))
		emitOutcomes(emit, laneRequestsInfo, now.Requests)
	})
}

// emitOutcomes exports a count of each outcome, with that as the last label.
func emitOutcomes(emit emit, i Info, counts [admission.Outcomes]uint64, labels ...string) {
	for o := range admission.Outcome(admission.Outcomes) {
		emit(i, float64(counts[o]), append(labels[:len(labels):len(labels)], o.String())...)
	}
}
