package simulate

import (
	"context"
	"time"

	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/simulate/traffic"
)

// engine decides requests in the order of their times, like the grants of the server: see
// Service.admit in package grants.
type engine struct {
	ctx      context.Context // of the run
	policies *ratelimit.Compiled
	counters *counting.Counters
	bans     *bans.Bans
	queues   *limiter.Queues
	clock    clock
	last     lastTokens
	lifetime time.Duration // of tokens, for requests without a lifetime
	stats    *stats
	answer   func(*traffic.Request, traffic.Answer)
	decided  []*waiting // requests that are no longer in a queue
	swept    sweeps
}

// ticket is a request on its way through the engine.
type ticket struct {
	r      *traffic.Request
	client *client
	key    ratelimit.Key
	e      *ratelimit.Effective
}

// waiting is a request in a queue.
type waiting struct {
	ticket
	request traffic.Request // of the ticket
	end     func(context.Context) limiter.Admission
}

func newEngine(ctx context.Context, policies *ratelimit.Compiled, o *Options, answer func(*traffic.Request, traffic.Answer)) (*engine, error) {
	e := &engine{
		ctx: ctx, policies: policies, counters: counting.NewCounters(o.MaxKeys), last: lastTokens{}, lifetime: o.TokenLifetime,
		stats: newStats(o), answer: answer,
	}
	e.clock.fired = e.settleDecided
	var err error
	e.bans, err = bans.New(ctx, bans.Options{Counters: e.counters, Clock: e.clock.Now})
	e.queues = limiter.NewQueuesOn(e.counters, e.clock.Now, e.clock.AfterFunc)
	return e, err
}

// take decides a request, unless it has to wait in a queue.
func (e *engine) take(r *traffic.Request) {
	e.clock.moveTo(r.At)
	if e.swept.due(r.At, e.counters) {
		e.sweep(r.At)
	}
	if r.Failed {
		e.stats.fail(r)
		e.answer(r, traffic.Answer{})
		return
	}
	t := ticket{r: r, client: e.stats.arrive(r)}
	t.key, t.e = keyOf(r), e.applied(r)
	if d, banned := e.banned(&t); banned {
		e.conclude(&t, &limiter.Admission{Decision: d})
		return
	}
	if t.e.Waits(t.key) {
		e.enter(&t)
		return
	}
	admission := limiter.Admission{Decision: e.counters.Take(r.At, t.key, t.e, 1)}
	e.conclude(&t, &admission)
}

// banned returns the decision on a request of a banned key. An unknown user is never banned.
func (e *engine) banned(t *ticket) (ratelimit.Decision, bool) {
	if t.r.Unknown {
		return ratelimit.Decision{}, false
	}
	return e.bans.Decide(e.clock.now, t.key, t.e)
}

// finish decides all waiting requests.
func (e *engine) finish() {
	e.clock.drain()
	e.stats.finish()
}

// clientCredentials is the grant without a user.
const clientCredentials = "client_credentials"

// keyOf returns the key that counts a request.
func keyOf(r *traffic.Request) ratelimit.Key {
	if r.Grant == clientCredentials {
		return ratelimit.Key{ClientID: r.Client}
	}
	return ratelimit.Key{ClientID: r.Client, Username: r.User}
}

// applied returns the policy for a request. If the user is unknown, it is the policy of a gateway.
// A request with an unknown address is not counted by source: in a log without addresses all
// requests would have the same one.
func (e *engine) applied(r *traffic.Request) *ratelimit.Effective {
	effective := e.policies.For(r.Client)
	if r.Unknown {
		effective = effective.Only(false, true, true)
	}
	var source string
	if effective.Source != nil {
		if r.Source.IsValid() {
			source = limiter.SourceOf(r.Source)
		} else {
			e.stats.withoutSource++
		}
	}
	return effective.ForRequest(ratelimit.GrantOf(r.Grant), source)
}

// enter queues a request that is over the limit.
func (e *engine) enter(t *ticket) {
	w := &waiting{ticket: *t, request: *t.r}
	w.r = &w.request
	policy := func() *ratelimit.Effective { return w.e }
	admission, end := e.queues.Enter(e.ctx, t.key, policy, func() { e.decided = append(e.decided, w) })
	if w.end = end; end == nil {
		e.conclude(t, &admission)
	}
}

// settleDecided concludes the requests that have left their queue.
func (e *engine) settleDecided() {
	for len(e.decided) > 0 {
		w := e.decided[0]
		e.decided = e.decided[1:]
		admission := w.end(e.ctx)
		if d, banned := e.banned(&w.ticket); banned && d.Rejected() && admission.Waited > 0 {
			e.queues.GiveBack(w.key, &admission)
			admission.Decision = d
		}
		e.conclude(&w.ticket, &admission)
	}
}

// conclude completes a decision by the parts that the limiter leaves to the grants, records it and
// answers.
func (e *engine) conclude(t *ticket, admission *limiter.Admission) {
	d := &admission.Decision
	reuses := t.r.Grant == clientCredentials && t.e.Reuses()
	if reuses && d.Outcome == ratelimit.Denied && e.last.find(t.r, e.clock.now) {
		d.Outcome, d.RetryAfter = ratelimit.Reused, 0
	}
	if t.r.Grant != passwordGrant && !t.r.Unknown && !admission.Held && d.ThroughLimit() {
		e.bans.Denied(e.clock.now, t.key, t.e)
	}
	a := answerOf(admission)
	e.stats.record(t, a, e.clock.now)
	if a.Outcome == traffic.Admitted || a.Outcome == traffic.Delayed {
		life := t.r.Lifetime
		if life == 0 {
			life = e.lifetime
		}
		e.stats.issue(t, e.clock.now, life)
		if reuses {
			e.last.keep(t.r, e.clock.now, life)
		}
	}
	e.answer(t.r, a)
}

// passwordGrant is not counted towards a ban: see Service.countDenial in package grants.
const passwordGrant = "password"

// answerOf returns the part of a decision that the client sees.
func answerOf(admission *limiter.Admission) traffic.Answer {
	switch admission.Outcome {
	case ratelimit.Denied:
		return traffic.Answer{Outcome: traffic.Denied, RetryAfter: admission.RetryAfter}
	case ratelimit.Banned:
		return traffic.Answer{Outcome: traffic.Banned, RetryAfter: admission.RetryAfter}
	case ratelimit.Reused:
		return traffic.Answer{Outcome: traffic.Reused}
	case ratelimit.Delayed:
		return traffic.Answer{Outcome: traffic.Delayed, Wait: admission.Waited}
	default: // in dry-run, a request passes
		return traffic.Answer{Outcome: traffic.Admitted}
	}
}

// sweep drops data that no later decision needs.
func (e *engine) sweep(now time.Time) {
	e.counters.Sweep(now)
	if err := e.bans.Refresh(e.ctx); err != nil {
		e.stats.warn(err.Error())
	}
	e.last.sweep(now)
	e.stats.sweep(now)
}

// sweeps decides when to drop old keys: seldom, but before they fill the memory. There must have
// been as many requests as keys left after the last sweep, so that a sweep costs little per
// request. (Comparing with the current number of keys would never sweep if each request has a new
// key.)
type sweeps struct {
	requests int
	next     time.Time
	left     int // keys after the last sweep
}

// sweepEvery is the least time between two sweeps, in the time of the requests.
const sweepEvery = time.Minute

func (s *sweeps) due(now time.Time, c *counting.Counters) bool {
	const every = 1 << 10
	if s.requests++; s.requests%every != 0 {
		return false
	}
	keys := c.Len()
	if s.requests == every {
		s.left = keys
	}
	if s.requests < s.left || now.Before(s.next) {
		return false
	}
	s.requests, s.next = 0, now.Add(sweepEvery)
	return true
}
