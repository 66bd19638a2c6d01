package simulate

import (
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/simulate/traffic"
)

// alone decides requests by one limit only, as if nothing else denied them.
type alone struct {
	policies     *ratelimit.Compiled
	user, client *ratelimit.Limits // users and clients with the limit
	grants       ratelimit.Grants
	counters     *counting.Counters
	swept        sweeps
	weighted     bool
}

func newAlone(p *Policies, l *ratelimit.Limit, maxKeys int) (*alone, error) {
	one := p.alone(l)
	compiled, err := one.Compile()
	if err != nil {
		return nil, err
	}
	base := compiled.For("") // no client has this name
	a := &alone{
		policies: compiled, user: base.User, grants: l.Grants, counters: counting.NewCounters(maxKeys),
		weighted: l.Algorithm == ratelimit.Weighted,
	}
	if l.Grants == 0 {
		a.client = base.Client
	}
	return a, nil
}

// concerns reports whether the limit counts a request, and returns its key and the policy that
// applies.
func (a *alone) concerns(r *traffic.Request) (k ratelimit.Key, e *ratelimit.Effective, does bool) {
	if r.Failed || r.Unknown {
		return k, nil, false
	}
	grant := ratelimit.GrantOf(r.Grant)
	k, e = keyOf(r), a.policies.For(r.Client)
	list := a.client
	if k.Username != "" {
		list = a.user
	}
	if list == nil || e.For(k) != list || e.Trusted || e.Mode == ratelimit.Off || !a.grants.Count(grant) {
		return k, nil, false
	}
	return k, e.ForRequest(grant, ""), true
}

// take decides on a request that the limit counts.
func (a *alone) take(now time.Time, k ratelimit.Key, e *ratelimit.Effective) ratelimit.Decision {
	if a.swept.due(now, a.counters) {
		a.counters.Sweep(now)
	}
	return a.counters.Take(now, k, e, 1)
}

// needs counts a request under a limit that is never reached. It returns the lowest limit that
// would have admitted the request and all earlier ones of its key.
func (a *alone) needs(now time.Time, k ratelimit.Key, e *ratelimit.Effective) int64 {
	if a.weighted { // requests counted at this moment weigh less than 1
		before := int64(0)
		if u := a.counters.Usage(now, k); len(u) > 0 {
			before = u[0].Limit.Requests - u[0].Remaining
		}
		a.take(now, k, e)
		return before + 1
	}
	d := a.take(now, k, e)
	st, _ := d.BindingLimit()
	return st.Limit.Requests - st.Remaining
}
