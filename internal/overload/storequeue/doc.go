// Package storequeue bounds the concurrent store calls of requests, so a slow or unavailable store
// delays only the requests that need it, and only briefly.
//
//	q := storequeue.New(storequeue.Options{Max: 80, Min: 20, Mode: ratelimit.Enforce})
//	ctx = storequeue.NewRequest(ctx) // once for each request
//	pass, err := q.Enter(ctx) // before each call
//	if err != nil {
//		return err // *overload.ShedError, or the caller has gone
//	}
//	defer func() { pass.Leave(measured) }()
//
// A pass is for one call, not for a request. It is never held while a password waits or is hashed,
// and the holder of a pass never waits for another one, so there is no deadlock. Calls of requests
// with an earlier admitted call come first. They also wait longer before they are refused, because
// their work would be lost.
//
// The limit follows the measured latency, between a minimum and a hard maximum. The maximum is
// needed because the baseline of the latency adapts to a lasting change: without it, a store that
// stays slow would get more and more concurrent calls.
package storequeue
