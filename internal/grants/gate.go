package grants

import (
	"context"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// Decided is one decision of the limiter, as it is passed to [Options].Observe.
type Decided struct {
	ClientID string
	Username string // empty for the client itself
	Grant    clientcfg.Grant
	Decision ratelimit.Decision
	// CandidateAsked is set if the request was also counted against limits that are tried out.
	// CandidateDenies is set if they would have denied it, CandidateReuses if the client would have got its
	// last token again instead, and then CandidateLimit is the name of the limit that it is over.
	// CandidateSince identifies these limits by the time since when they are tried.
	CandidateAsked, CandidateDenies, CandidateReuses bool
	CandidateLimit                                   string
	CandidateSince                                   time.Time
}

// admit asks the limiter for one token. The client is proven and the user is known, so the key is
// theirs alone. The clock is read again, because look may have taken long. Over the limit the client may
// get its last token again: then x.reuse has it. The caller calls endTurn.
func (s *Service) admit(ctx context.Context, x *issuance) (RateLimit, error) {
	if s.opts.Counters == nil {
		return RateLimit{}, nil
	}
	now, policies := s.opts.Clock(), s.opts.Policies()
	effective := policies.For(x.client.ID)
	s.beginReuse(x, effective)
	d := s.opts.Counters.Take(now, x.quota(), effective, 1)
	s.reuseInstead(x, &d)
	return s.decided(ctx, now, policies, x, &d)
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
	d, denies := s.opts.Counters.Denies(now, x.quota(), policies.For(x.client.ID))
	if !denies {
		return nil
	}
	_, err := s.decided(ctx, now, policies, x, &d)
	return err
}

// quota is the key that the request counts against.
func (x *issuance) quota() ratelimit.Key {
	return ratelimit.Key{ClientID: x.client.ID, Username: x.auth.Username}
}

// decided passes the decision to the observer and turns it into an answer.
func (s *Service) decided(ctx context.Context, now time.Time, policies *clientcfg.PolicySnapshot, x *issuance, d *ratelimit.Decision) (fields RateLimit, err error) {
	if s.opts.Observe != nil {
		decided := Decided{ClientID: x.client.ID, Username: s.countedName(now, x, d), Grant: x.grant, Decision: *d}
		s.tryCandidate(now, policies, x, &decided)
		s.opts.Observe(ctx, decided)
	}
	fields.Policy, fields.Limit = d.Headers()
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
	if d.OverTotal() {
		return "Token rate limit exceeded for this client and all its users together"
	}
	if x.auth.Username == "" {
		return "Token rate limit exceeded for this client"
	}
	return "Token rate limit exceeded for this client and user"
}

// tryCandidate counts the request against limits that are tried out, if there are any for its key,
// whether or not the limits in force admitted it. It never denies a request. Limits of users do not
// concern one with an override, which stays whatever the limits of all others become.
func (s *Service) tryCandidate(now time.Time, policies *clientcfg.PolicySnapshot, x *issuance, out *Decided) {
	trial, ok := policies.Trial(x.client.ID)
	if !ok {
		return
	}
	key, effective, concerned := trial.Of(x.auth.Username, out.Decision.Overridden)
	if !concerned {
		return
	}
	d := s.opts.Counters.Take(now, key, effective, 1)
	over := d.Outcome == ratelimit.WouldDeny
	reuses := s.candidateReuses(x, policies.For(x.client.ID), &trial, over)
	out.CandidateAsked, out.CandidateDenies, out.CandidateReuses, out.CandidateSince = true, over && !reuses, reuses, trial.Since
	if over {
		out.CandidateLimit = bindingName(&d)
	}
}
