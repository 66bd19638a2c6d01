package app

import (
	"context"
	"time"

	"oauth-server/internal/config"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/store"
)

// overloadControl connects overload control with the configuration and with the data for operators. Its
// fields are set before the first request.
type overloadControl struct {
	shedder    *overload.Shedder
	storeQueue *storequeue.Queue // before the store
	activity   *activity.Recorder
}

func newOverload(c config.Overload, s store.Backend) *overloadControl {
	o := &overloadControl{}
	before := storeQueueOptions(s, c.Mode)
	before.Refused = o.refused
	o.storeQueue = storequeue.New(before)
	o.shedder = overload.New(c.Settings(), o.observe)
	return o
}

// set applies a changed configuration.
func (o *overloadControl) set(c config.Overload) {
	o.shedder.Set(c.Settings())
	o.storeQueue.Set(c.Mode)
}

// observe records a request that was not simply admitted. It implements [overload.Observer].
func (o *overloadControl) observe(_ context.Context, r *overload.Request, outcome overload.Outcome) {
	if outcome == overload.Shed || outcome == overload.WouldShed {
		o.activity.Shed(time.Now(), r.ClientID, outcome == overload.WouldShed)
	}
}

// refused records a request with a call that was refused before the store, or would have been in
// dry-run mode, unless the shedder has already recorded it.
func (o *overloadControl) refused(ctx context.Context, dryRun bool) {
	if r := overload.Requested(ctx); r != nil && (!dryRun || !r.WouldShed) {
		o.activity.Shed(time.Now(), r.ClientID, dryRun)
	}
}
