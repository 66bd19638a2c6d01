// Package limiter decides whether a token request may pass. It applies everything that operators
// can configure: the limits of the client and user, candidate limits, bans, and queues. It combines
// oauth-server/internal/ratelimit with bans. Two packages use it: the token endpoint of this server
// (oauth-server/internal/grants), and the gateway in front of another server
// (oauth-server/internal/gateway).
//
//	l := limiter.New(limiter.Options{Counters: counters, Policies: policies, Clock: clock.Now})
//	admission := l.Admit(ctx, limiter.Request{Key: ratelimit.Key{ClientID: "shop", Username: "ada"}, Grant: "refresh_token"})
//	if admission.Rejected() { … 429 … }
//
// The package does no I/O. It passes every decision to [Options].Observe.
//
// # Queues
//
// [Queues.Take] is [counting.Counters.Await] for a policy with a max_wait. A request over the limit
// joins the queue of its key if the queue has a free place and [counting.Forecast] predicts that
// the request will pass within max_wait. Otherwise it is denied at once, and Retry-After is the
// predicted time. Queues are first come, first served: a new request is never decided before the
// requests that already wait.
//
// A queue has one timer, set to the millisecond at which its first request passes. It has no
// goroutine of its own: each waiting request is a goroutine of its caller and less than a kilobyte.
// The timer fires at least twice a second to detect changes of the policy or of other processes'
// counts. Requests that can no longer pass in time are then denied.
//
// # One queue, worked through
//
// A limit of 2 per second, in ten frames, with max_wait 1s. At 12:00:00.030 five requests arrive.
// Two pass. Their frame, which began at 12:00:00.000, shrinks from 12:00:01.000 on: there is room
// for one more at 12:00:01.001, and for a second one at 12:00:01.051. So the third request waits
// for 971 ms. The fourth is denied with Retry-After 2, because it would pass after 1,021 ms. If the
// third leaves at 12:00:00.500, a request that arrives then takes its place, and waits for 501 ms.
//
// In dry-run no request waits. It passes at once, and its place in the queue counts it later, as if
// it had waited. So the counts are the same as under enforcement.
//
// The queues read only the clock that they are given.
package limiter
