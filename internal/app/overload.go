package app

import (
	"context"
	"time"

	"oauth-server/internal/activity"
	"oauth-server/internal/admission"
	"oauth-server/internal/admission/lane"
	"oauth-server/internal/config"
	"oauth-server/internal/metrics"
	"oauth-server/internal/store"
)

// overload connects overload control with the configuration and with the data for operators. Its
// fields are set before the first request.
type overload struct {
	gate     *admission.Gate
	lane     *lane.Lane // before the store
	activity *activity.Recorder
}

func newOverload(c config.Overload, s store.Backend) *overload {
	o := &overload{}
	before := laneOptions(s, c.Mode)
	before.Refused = o.refused
	o.lane = lane.New(before)
	o.gate = admission.New(c.Gate(), o.observe)
	return o
}

// set applies a changed configuration.
func (o *overload) set(c config.Overload) {
	o.gate.Set(c.Gate())
	o.lane.Set(c.Mode)
}

// observe records a request that was not simply admitted. It implements [admission.Observer].
func (o *overload) observe(_ context.Context, r *admission.Request, outcome admission.Outcome) {
	if outcome == admission.Shed || outcome == admission.WouldShed {
		o.activity.Shed(time.Now(), r.ClientID, outcome == admission.WouldShed)
	}
}

// refused records a request with a call that was refused before the store, or would have been in
// dry-run mode, unless the gate has already recorded it.
func (o *overload) refused(ctx context.Context, dryRun bool) {
	if r := admission.Requested(ctx); r != nil && (!dryRun || !r.WouldShed) {
		o.activity.Shed(time.Now(), r.ClientID, dryRun)
	}
}

// laneMetrics returns the state of the lane for metrics.
func (o *overload) laneMetrics() metrics.StoreLane {
	st := o.lane.Stats()
	return metrics.StoreLane{
		Limit: st.Limit, InFlight: st.InFlight, Waiting: st.Queued, Requests: st.Calls,
	}
}
