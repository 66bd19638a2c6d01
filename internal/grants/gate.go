package grants

import (
	"context"
	"net/netip"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/network"
	"oauth-server/internal/ratelimit"
)

// Decided is one decision of the limiter, as it is passed to [Options].Observe.
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

// Tried is what a candidate would have done with a request: its outcome as in dry-run. The zero Tried, with the
// outcome Passed, is that of a request that concerns no candidate.
type Tried struct {
	Outcome ratelimit.Outcome
	Limit   string    // the name of the limit that the request is over; empty if it is not, and for a ban
	Since   time.Time // since when these limits are tried, which identifies them
}

// admit asks the limiter for one token. The client is proven and the user is known, so the key is
// theirs alone. The clock is read again, because look may have taken long. Under a strict limit the request may wait
// for permits. Over the limit it may wait for its turn, or the client get its last token again: then x.reuse has it.
// The caller calls endTurn.
func (s *Service) admit(ctx context.Context, x *issuance, req TokenRequest) (RateLimit, error) {
	if s.opts.Counters == nil {
		return RateLimit{}, nil
	}
	now, policies := s.opts.Clock(), s.opts.Policies()
	asked := x.asked() // x changes after the wait, and others may still wait in its line
	effective := asked.under(policies)
	out := Decided{Tried: s.tryCandidate(ctx, now, policies, x)} // before the request waits: it counts when it came
	if d, banned := s.banned(now, x, effective); banned {
		out.Decision = d
		return s.decided(ctx, now, x, &out)
	}
	s.beginReuse(x, effective)
	turn := s.turns.Take(ctx, x.quota(), func() *ratelimit.Effective { return asked.under(s.opts.Policies()) })
	s.bannedMeanwhile(x, &turn)
	s.reuseInstead(ctx, x, &turn.Decision)
	s.countDenial(x, effective, &turn)
	out.Decision, out.Waited, out.Leased = turn.Decision, turn.Waited, turn.Leased
	fields, err := s.decided(ctx, now, x, &out)
	if err != nil || turn.Waited == 0 {
		return fields, err
	}
	return fields, s.lookAgain(ctx, x, req, &turn)
}

// deniedAlready denies a request whose quota is used up before its password is hashed: a client
// that does not heed Retry-After must not keep people from signing in. The limits themselves count
// nothing, as the user is not proven yet. A candidate counts the request as it counts every other
// one that was denied; see tryCandidate.
func (s *Service) deniedAlready(ctx context.Context, x *issuance) error {
	if s.opts.Counters == nil {
		return nil
	}
	now, policies := s.opts.Clock(), s.opts.Policies()
	if err := s.bannedAlready(ctx, now, policies, x); err != nil {
		return err
	}
	d, denies := s.turns.Denies(x.quota(), x.asked().under(policies))
	if !denies {
		return nil
	}
	_, err := s.decided(ctx, now, x, &Decided{Decision: d, Tried: s.tryCandidate(ctx, now, policies, x)})
	return err
}

// quota is the key that the request counts against.
func (x *issuance) quota() ratelimit.Key {
	return ratelimit.Key{ClientID: x.client.ID, Username: x.auth.Username}
}

// asked is what of a request the limits tell apart, besides its key.
type asked struct {
	clientID string
	grant    ratelimit.Grants
	remote   netip.Addr
}

func (x *issuance) asked() asked {
	return asked{x.client.ID, ratelimit.GrantOf(string(x.grant)), x.remote}
}

// under returns what applies to the request.
func (a asked) under(policies *clientcfg.PolicySnapshot) *ratelimit.Effective {
	return a.of(policies.For(a.clientID))
}

// of returns what applies to the request under limits of the client, which may be those of a candidate.
func (a asked) of(e *ratelimit.Effective) *ratelimit.Effective {
	var source string
	if e.Source != nil {
		source = network.Source(a.remote)
	}
	return e.ForRequest(a.grant, source)
}

// decided passes the decision to the observer and turns it into an answer.
func (s *Service) decided(ctx context.Context, now time.Time, x *issuance, out *Decided) (fields RateLimit, err error) {
	d := &out.Decision
	if s.opts.Observe != nil {
		out.ClientID, out.Username, out.Grant = x.client.ID, s.countedName(now, x, d), x.grant
		s.opts.Observe(ctx, *out)
	}
	fields.Policy, fields.Limit = d.Headers()
	if d.Outcome == ratelimit.Banned {
		return RateLimit{}, &LimitedError{RetryAfter: time.Duration(d.RetryAfterSeconds()) * time.Second, Limit: banLimit, Banned: true, reason: bannedFor(x)}
	}
	if d.Rejected() {
		return RateLimit{}, &LimitedError{
			RetryAfter: time.Duration(d.RetryAfterSeconds()) * time.Second, RateLimit: fields,
			Limit: bindingName(d), QuotaExceeded: d.Exceeded(), Violated: d.Violated(), reason: overQuota(x, d),
		}
	}
	return fields, nil
}

// countedName returns the username for the observer. That of a password grant may be denied before its
// password is verified, and people type passwords into the field for the name: so it is passed on only
// if requests of it were admitted before.
func (s *Service) countedName(now time.Time, x *issuance, d *ratelimit.Decision) string {
	if x.grant == clientcfg.Password && d.Rejected() && len(s.opts.Counters.Usage(now, x.quota())) == 0 {
		return ""
	}
	return x.auth.Username
}

// bindingName returns the name of the limit that decided; empty if none applied.
func bindingName(d *ratelimit.Decision) string {
	st, _ := d.BindingLimit()
	return st.Limit.Name
}

func overQuota(x *issuance, d *ratelimit.Decision) string {
	switch {
	case d.OverTotal():
		return "Token rate limit exceeded for this client and all its users together"
	case d.OverShared():
		return "Token rate limit exceeded for this client from this address"
	}
	if x.auth.Username == "" {
		return "Token rate limit exceeded for this client"
	}
	return "Token rate limit exceeded for this client and user"
}
