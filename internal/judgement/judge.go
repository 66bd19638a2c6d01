package judgement

import (
	"context"
	"net/netip"
	"time"

	"oauth-server/internal/bans"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/network"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/turns"
)

// Decided is one decision, as it is passed to [Options].Observe.
type Decided struct {
	ClientID string
	Username string // empty for the client itself
	Grant    clientcfg.Grant
	Decision ratelimit.Decision
	// Waited is for its turn, Leased for permits of a strict limit without one.
	Waited, Leased time.Duration
	// Tried is what limits that are tried out would have done with the request.
	Tried Tried
}

// Request is a token request of which the client and the user are known.
type Request struct {
	Key    ratelimit.Key // Username empty for client_credentials
	Grant  clientcfg.Grant
	Remote netip.Addr // where it comes from
	// Unproven is set if a denied request proves nothing, because it is denied before its password, or its client, is
	// verified. Its denial counts towards no ban, and the name of a user without counts is passed to no observer: people
	// type passwords into the field for the name.
	Unproven bool
	// Unknown is set if the request has a user and it is not known who that is: Key has no Username. Only what counts a
	// client over all its users, and its source, counts the request then.
	Unknown bool
	// Reuse is what over_limit: reuse does with the request; nil: nothing.
	Reuse Reuse
	// By is what a request for Reserve proves itself by; nil: it is counted whatever that is.
	By *Credentials
}

// Reuse hands out the last token of a client again instead of denying a request.
type Reuse interface {
	// Begin is called before the decision.
	Begin(e *ratelimit.Effective)
	// Instead may change the outcome of a request that is over its limit.
	Instead(ctx context.Context, d *ratelimit.Decision)
	// Tried reports whether there would have been a token to hand out under the limits that are tried out, which deny
	// the request or do not.
	Tried(e *ratelimit.Effective, trial *clientcfg.Trial, denies bool) bool
}

// Options are what a [Judge] decides by. Counters, Policies and Clock are required.
type Options struct {
	Counters *ratelimit.Counters
	Policies func() *clientcfg.PolicySnapshot // the current ones, without I/O
	Clock    func() time.Time                 // of all counts; see oauth-server/internal/clock
	Bans     *bans.Bans                       // nil: bans of policies have no effect
	// Observe is called with every decision, before the answer is made, with the context of the request. It must not
	// block. Nil disables it.
	Observe func(context.Context, Decided)
}

// Judge decides on token requests. It is safe for concurrent use.
type Judge struct {
	Options
	lines    *turns.Lines // of requests over the limit
	unproven unproven
}

// New makes a Judge.
func New(o Options) *Judge {
	j := &Judge{Options: o, lines: turns.New(o.Counters, o.Clock)}
	j.unproven.closed = make(chan struct{})
	return j
}

// Admit asks for one token. The clock is read now, because it may have taken long to know the request. Under a strict
// limit it may wait for permits, and over the limit for its turn.
func (j *Judge) Admit(ctx context.Context, r Request) turns.Turn {
	now, policies := j.Clock(), j.Policies()
	effective := r.under(policies)
	out := Decided{Tried: j.tryCandidate(ctx, now, policies, &r)} // before the request waits: it counts when it came
	if d, banned := j.banned(now, &r, effective); banned {
		out.Decision = d
		j.observe(ctx, now, &r, &out)
		return turns.Turn{Decision: d}
	}
	if r.Reuse != nil {
		r.Reuse.Begin(effective)
	}
	turn := j.lines.Take(ctx, r.Key, func() *ratelimit.Effective { return r.under(j.Policies()) })
	j.bannedMeanwhile(&r, &turn)
	if r.Reuse != nil {
		r.Reuse.Instead(ctx, &turn.Decision)
	}
	j.countDenial(&r, effective, &turn)
	out.Decision, out.Waited, out.Leased = turn.Decision, turn.Waited, turn.Leased
	j.observe(ctx, now, &r, &out)
	return turn
}

// Denied denies a request that Admit would deny at once, before anything that costs is done for it: a client that does
// not heed Retry-After must not keep people from signing in. The limits themselves count nothing. A candidate counts the
// request as it counts every other one that was denied.
func (j *Judge) Denied(ctx context.Context, r Request) (d ratelimit.Decision, denied bool) {
	now, policies := j.Clock(), j.Policies()
	if d, denied = j.denies(now, policies, &r); denied {
		j.observe(ctx, now, &r, &Decided{Decision: d, Tried: j.tryCandidate(ctx, now, policies, &r)})
	}
	return d, denied
}

// denies returns the decision on a request that Admit would deny at once.
func (j *Judge) denies(now time.Time, policies *clientcfg.PolicySnapshot, r *Request) (d ratelimit.Decision, denied bool) {
	effective := r.under(policies)
	if d, denied = j.banned(now, r, effective); !denied || !d.Rejected() {
		d, denied = j.lines.Denies(r.Key, effective)
	}
	return d, denied
}

// GiveBack gives the turn of a request that got nothing for it to the next, as [turns.Lines.GiveBack] does.
func (j *Judge) GiveBack(k ratelimit.Key, t *turns.Turn) { j.lines.GiveBack(k, t) }

// StopWaiting denies all requests that wait for their turn, and has none wait from now on.
func (j *Judge) StopWaiting() {
	j.unproven.close()
	j.lines.Close()
}

// Waiting is how many requests wait for their turn.
func (j *Judge) Waiting() int {
	j.unproven.mu.Lock()
	defer j.unproven.mu.Unlock()
	return j.lines.Waiting() + j.unproven.wait
}

// under returns what applies to the request.
func (r *Request) under(policies *clientcfg.PolicySnapshot) *ratelimit.Effective {
	return r.of(policies.For(r.Key.ClientID))
}

// of returns what applies to the request under limits of the client, which may be those of a candidate.
func (r *Request) of(e *ratelimit.Effective) *ratelimit.Effective {
	if r.Unknown {
		e = e.Only(false, true, true)
	}
	var source string
	if e.Source != nil {
		source = network.Source(r.Remote)
	}
	return e.ForRequest(ratelimit.GrantOf(string(r.Grant)), source)
}

// observe passes the decision to the observer.
func (j *Judge) observe(ctx context.Context, now time.Time, r *Request, out *Decided) {
	if j.Observe == nil {
		return
	}
	out.ClientID, out.Grant = r.Key.ClientID, r.Grant
	if !r.Unproven || !out.Decision.Rejected() || len(j.Counters.Usage(now, r.Key)) > 0 {
		out.Username = r.Key.Username
	}
	j.Observe(ctx, *out)
}

// bindingName returns the name of the limit that decided; empty if none applied.
func bindingName(d *ratelimit.Decision) string {
	st, _ := d.BindingLimit()
	return st.Limit.Name
}
