package app

import (
	"context"
	"time"

	"oauth-server/internal/config"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
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
func (o *overloadControl) observe(r *overload.Request, outcome overload.Outcome) {
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

// fileCalls is the maximum number of concurrent calls of requests to the data file. It is the size
// of one commit. More writes would wait for the next commit anyway, and fewer would make each
// commit smaller and so more expensive per write.
const fileCalls = 1024

// storeQueueOptions returns the options of the queue before the store. With a database, requests get four
// fifths of the connections, so the exchanges between instances always get through. With a file,
// the limit does not adapt to the latency: the latency grows with the number of writes in a commit,
// and so does the throughput.
func storeQueueOptions(s store.Backend, mode ratelimit.Mode) storequeue.Options {
	pool := poolSize(s)
	if pool == 0 {
		return storequeue.Options{Max: fileCalls, Mode: mode}
	}
	most := max(pool*4/5, 1)
	return storequeue.Options{Max: most, Min: max(most/4, 1), Mode: mode}
}

// poolSize returns the maximum number of connections of a store, or 0 for a file.
func poolSize(s store.Backend) int {
	if pool, ok := s.(interface{ Connections() int }); ok {
		return pool.Connections()
	}
	return 0
}
