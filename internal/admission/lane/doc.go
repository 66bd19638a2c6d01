// Package lane bounds how many calls of requests are at the store at once, so that a slow or absent store delays only
// the requests that need it, and those for a short time.
//
//	l := lane.New(lane.Options{Max: 80, Min: 20, Mode: ratelimit.Enforce})
//	ctx = lane.NewRequest(ctx) // once for each request
//	pass, err := l.Enter(ctx)  // before each call
//	if err != nil {
//		return err // *admission.ShedError, or the caller has gone
//	}
//	defer func() { pass.Leave(measured) }()
//
// A pass is for one call, not for a request: it is never held while a password waits or is hashed, and who holds one
// never waits for a second, so nothing can deadlock. Calls of requests that have been let in before are first, and
// are not refused for their age as soon as others, because their work would be lost.
//
// The limit follows the measured latency, between a minimum and a hard maximum: the baseline that latency is compared
// with follows a lasting change, so without the maximum a store that stays slow would get ever more calls at once.
package lane
