package limiter

import (
	"context"
	"net/netip"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// Decided is a decision, as passed to [Options].Observe.
type Decided struct {
	ClientID string
	Username string // empty for the client itself
	Grant    string // the grant_type
	Decision ratelimit.Decision
	// Waited is the time in a queue. Leased is the time outside a queue for permits of a strict limit or for the first read of a
	// key.
	Waited, Leased time.Duration
	// Tried is the decision that a candidate would have made.
	Tried Tried
}

// Request is a token request with a known client and user.
type Request struct {
	Key    ratelimit.Key // Username empty for client_credentials
	Grant  string        // the grant_type
	Remote netip.Addr    // address of the sender
	// Unproven is set if the request is decided before its password or client is verified, so a
	// denial proves nothing. A denial does not count towards a ban. Observers do not get the
	// username unless the user has counts or a ban: people type passwords into the username field.
	Unproven bool
	// Unknown is set if the request has a user, but it is not known which. Key then has no
	// Username. Only the total of the client and the source count the request.
	Unknown bool
	// Reuse implements over_limit: reuse for the request; nil: no reuse.
	Reuse Reuse
	// By is the credentials of a request for Reserve; nil: it is counted without regard to
	// credentials.
	By *Credentials
}

// Reuse returns the last token of a client again instead of denying a request.
type Reuse interface {
	// Begin is called before the decision.
	Begin(e *ratelimit.Effective)
	// Instead may change the outcome of a request that is over its limit.
	Instead(ctx context.Context, d *ratelimit.Decision)
	// Tried reports whether a token could have been returned under a candidate. denies reports
	// whether the candidate denies the request.
	Tried(e *ratelimit.Effective, trial *ratelimit.Trial, denies bool) bool
}

// Options configure a [Limiter]. Counters, Policies and Clock are required.
type Options struct {
	Counters *counting.Counters
	Policies func() Policies  // the present ones, without I/O
	Clock    func() time.Time // clock of all counts; see oauth-server/internal/syncer/clock
	Bans     Bans             // nil: bans of policies have no effect
	// Observe is called with every decision before the response is made, with the context of the
	// request. It must not block. Nil: not called.
	Observe func(context.Context, Decided)
}

// Policies are the policies of all clients at one moment.
type Policies interface {
	// For returns the limits and settings of a client.
	For(clientID string) *ratelimit.Effective
	// Trial returns the candidate that the client's requests are tried against, or false.
	Trial(clientID string) (ratelimit.Trial, bool)
}

// Bans keeps out clients and users that go on after they were denied. Package bans implements it.
type Bans interface {
	// Decide returns the decision on a request of a banned key, or false.
	Decide(now time.Time, k ratelimit.Key, e *ratelimit.Effective) (ratelimit.Decision, bool)
	// Denied counts a denied request of the key.
	Denied(now time.Time, k ratelimit.Key, e *ratelimit.Effective)
	// Tried and TriedDenied are the same for a candidate, which bans nobody.
	Tried(now time.Time, k ratelimit.Key, e *ratelimit.Effective, since time.Time) bool
	TriedDenied(now time.Time, k ratelimit.Key, e *ratelimit.Effective, since time.Time)
}

// Limiter decides on token requests. It is safe for concurrent use.
type Limiter struct {
	Options
	queues   *Queues // queues of requests over the limit
	unproven unproven
}

// New makes a Limiter.
func New(o Options) *Limiter {
	l := &Limiter{Options: o, queues: NewQueues(o.Counters, o.Clock)}
	l.unproven.closed = make(chan struct{})
	return l
}

// Admit decides on a request for one token. It reads the clock itself, because parsing and
// verifying the request may have taken long. The request may wait for permits of a strict limit, or
// in a queue if it is over a limit.
func (l *Limiter) Admit(ctx context.Context, r Request) Admission {
	now, policies := l.Clock(), l.Policies()
	effective := r.under(policies)
	out := Decided{Tried: l.tryCandidate(ctx, now, policies, &r)} // before the request waits, so that it counts at its arrival
	if d, banned := l.banned(now, &r, effective); banned {
		out.Decision = d
		l.observe(ctx, now, &r, &out)
		return Admission{Decision: d}
	}
	if r.Reuse != nil {
		r.Reuse.Begin(effective)
	}
	admission := l.queues.Take(ctx, r.Key, func() *ratelimit.Effective { return r.under(l.Policies()) })
	l.bannedMeanwhile(&r, &admission)
	if r.Reuse != nil {
		r.Reuse.Instead(ctx, &admission.Decision)
	}
	l.countDenial(&r, effective, &admission)
	out.Decision, out.Waited, out.Leased = admission.Decision, admission.Waited, admission.Leased
	l.observe(ctx, now, &r, &out)
	return admission
}

// Denied denies a request that Admit would deny at once, before any expensive work. Otherwise a
// client that ignores Retry-After could keep people from signing in. The limits themselves count
// nothing. A candidate counts the request like any other denied request.
func (l *Limiter) Denied(ctx context.Context, r Request) (d ratelimit.Decision, denied bool) {
	now, policies := l.Clock(), l.Policies()
	if d, denied = l.denies(now, policies, &r); denied {
		l.observe(ctx, now, &r, &Decided{Decision: d, Tried: l.tryCandidate(ctx, now, policies, &r)})
	}
	return d, denied
}

// denies returns the decision on a request that Admit would deny at once.
func (l *Limiter) denies(now time.Time, policies Policies, r *Request) (d ratelimit.Decision, denied bool) {
	effective := r.under(policies)
	if d, denied = l.banned(now, r, effective); !denied || !d.Rejected() {
		d, denied = l.queues.Denies(r.Key, effective)
	}
	return d, denied
}

// GiveBack gives the admission of a request without a result to the next one in the queue, see
// [Queues.GiveBack].
func (l *Limiter) GiveBack(k ratelimit.Key, t *Admission) { l.queues.GiveBack(k, t) }

// StopWaiting denies all waiting requests. After that no request waits.
func (l *Limiter) StopWaiting() {
	l.unproven.close()
	l.queues.Close()
}

// Waiting returns how many requests wait in queues.
func (l *Limiter) Waiting() int {
	l.unproven.mu.Lock()
	defer l.unproven.mu.Unlock()
	return l.queues.Waiting() + l.unproven.wait
}

// under returns the limits and settings for the request.
func (r *Request) under(policies Policies) *ratelimit.Effective {
	return r.of(policies.For(r.Key.ClientID))
}

// of returns the limits and settings for the request under e, which may be a candidate.
func (r *Request) of(e *ratelimit.Effective) *ratelimit.Effective {
	if r.Unknown {
		e = e.Only(false, true, true)
	}
	var source string
	if e.Source != nil {
		source = SourceOf(r.Remote)
	}
	return e.ForRequest(ratelimit.GrantOf(r.Grant), source)
}

// observe passes the decision to the observer.
func (l *Limiter) observe(ctx context.Context, now time.Time, r *Request, out *Decided) {
	if l.Observe == nil {
		return
	}
	out.ClientID, out.Grant = r.Key.ClientID, r.Grant
	if !r.Unproven || !out.Decision.Rejected() || out.Decision.Outcome == ratelimit.Banned || len(l.Counters.Usage(now, r.Key)) > 0 {
		out.Username = r.Key.Username
	}
	l.Observe(ctx, *out)
}

// bindingName returns the name of the limit that decided, or an empty string.
func bindingName(d *ratelimit.Decision) string {
	st, _ := d.BindingLimit()
	return st.Limit.Name
}
