package grants

import (
	"context"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
)

// reuse is the state of over_limit: reuse for one request. Over the limit, the client gets the last
// token that was issued for an equal request.
//
// Equal requests may run at the same time, and a denied request must find the token that an earlier
// admitted one is about to issue. So each request is registered before it is decided, until it has
// issued its token or was denied. If a denied request finds no token, it waits for the earlier
// requests, one after the other, until there is a token. That takes as long as a signature, plus
// the time that they wait for permits of a strict limit. No other request waits for it.
type reuse struct {
	in      *lastTokens
	id      tokenSet
	enforce bool          // hand out the token itself
	keeps   bool          // the issued token becomes the last token
	done    chan struct{} // closed once the request has issued its token or was denied
	again   lastToken     // token to hand out if the outcome is Reused
}

// reusing implements over_limit: reuse for one request. It implements [limiter.Reuse].
type reusing struct {
	*Service
	x *issuance
}

// Begin registers the request for over_limit: reuse, if the client's policy has it. The caller
// always calls endReuse afterwards, whatever the outcome.
func (s reusing) Begin(e *ratelimit.Effective) {
	x := s.x
	if !e.Reuses() {
		return
	}
	in := s.last.in(e.Mode)
	id := in.set(x.client.ID, x.client, x.credential, x.scopes, time.Time{})
	x.reuse = &reuse{in: in, id: id, enforce: e.Mode == ratelimit.Enforce, done: make(chan struct{})}
	in.begin(x.reuse)
}

// endReuse releases the requests that wait for the token of this request.
func (x *issuance) endReuse() {
	if r := x.reuse; r != nil {
		r.in.end(r)
	}
}

// Instead changes the outcome of a request over the limit if there is a token to hand out again, or
// if there would be one in dry-run.
func (s reusing) Instead(ctx context.Context, d *ratelimit.Decision) {
	x, r := s.x, s.x.reuse
	if r == nil {
		return
	}
	// In dry-run, a token that enforce would not have issued does not become the last token.
	r.keeps = d.Outcome == ratelimit.Allowed
	if d.Outcome != ratelimit.Denied && d.Outcome != ratelimit.WouldDeny {
		return
	}
	others := r.in.end(r)
	found := s.findAgain(x) // a request that ended before that call has kept its token
	for len(others) > 0 && !found && ctx.Err() == nil {
		select {
		case <-others[0].done:
		case <-ctx.Done():
		}
		others = others[1:]
		found = s.findAgain(x)
	}
	if found {
		d.Outcome, d.RetryAfter = ratelimit.Reused, 0
		if !r.enforce {
			d.Outcome = ratelimit.WouldReuse
		}
	}
}

// findAgain finds the token to hand out.
func (s *Service) findAgain(x *issuance) bool {
	t, ok := s.findLast(x.reuse.in, x.client, x.reuse.id)
	if !ok || x.reuse.enforce && !s.opts.Signer.Published(t.text) {
		return false
	}
	if x.reuse.enforce {
		x.reuse.again = t
	}
	return true
}

// findLast returns the last token of the set. ok is false if the token is no longer good, or if
// revocations were not read recently enough to know that.
func (s *Service) findLast(in *lastTokens, c *clientcfg.Client, id tokenSet) (lastToken, bool) {
	now := s.opts.Now()
	if now.Sub(*s.last.read.Load()) > revocationsKnownFor {
		return lastToken{}, false
	}
	return in.find(c, id, now)
}

// again returns the response with the token that was issued before and its remaining lifetime.
func (s *Service) again(x *issuance, fields oautherr.RateLimit) TokenResponse {
	t := &x.reuse.again
	return TokenResponse{
		AccessToken: t.text, ExpiresIn: t.expires.Sub(s.opts.Now()).Truncate(time.Second), Scopes: x.scopes, RateLimit: fields,
	}
}

// keep stores the issued token for later requests over the limit. In dry-run and for a candidate it
// records only that there was a token, which no longer counts once it is revoked.
func (s *Service) keep(x *issuance, token string) {
	t := s.lastToken(x, x.claims.ExpiresAt)
	t.jti, t.length = x.claims.ID, len(token)
	if x.tried != nil {
		t.id = *x.tried
		s.last.tried.put(x.client.ID, t)
	}
	if x.reuse == nil || !x.reuse.keeps {
		return
	}
	t.id = x.reuse.id
	if x.reuse.enforce {
		t.text = token
	}
	x.reuse.in.put(x.client.ID, t)
}

func (s *Service) lastToken(x *issuance, expires time.Time) lastToken {
	expires = expires.Truncate(time.Second) // tokens have times in seconds
	return lastToken{
		stamp: x.client.Stamp, version: x.client.Version,
		expires: expires, until: ratelimit.ReusedUntil(expires, s.opts.AccessTokenLifetime),
	}
}

// Tried reports whether the client would have got its last token again under candidate limits that
// deny the request. If the candidate admits the request, Tried records immediately that a token is
// issued, because the limits in force may still deny the request. keep fills in the issued token
// later. The mode does not matter.
func (s reusing) Tried(e *ratelimit.Effective, trial *ratelimit.Trial, denies bool) bool {
	x := s.x
	if e.OverLimit != ratelimit.OverLimitReuse {
		return false
	}
	id := s.last.tried.set(trial.ClientID, x.client, x.credential, x.scopes, trial.Since)
	if denies {
		_, ok := s.findLast(s.last.tried, x.client, id)
		return ok
	}
	t := s.lastToken(x, x.now.Add(s.opts.AccessTokenLifetime))
	t.id, x.tried = id, &id
	s.last.tried.put(x.client.ID, t)
	return false
}
