package grants

import (
	"context"
	"sync"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// reuse is the part that over_limit: reuse has in a request: over its limit, the client gets the token that
// it got last for the same.
//
// Requests for the same may be under way at once, and one that is denied must find the token that another,
// admitted before it, is about to issue. So each is noted from before it is decided until it has issued its
// token or was denied. One that was denied and finds no token waits for those before it, one after the other,
// until there is a token: for the time that a signature takes, and where they wait for permits of a strict
// limit, for that time too. Nobody else waits for it.
type reuse struct {
	in      *lastTokens
	id      tokenSet
	enforce bool          // the token itself is handed out
	keeps   bool          // the token that is issued becomes the last one
	number  int64         // of the requests under way with it, in the order in which they came
	done    chan struct{} // closed once it has issued its token or was denied
	again   lastToken     // to be handed out, if the outcome is Reused
}

// underWay is the requests under way that may issue a token. Those for the same are in the same one.
type underWay struct {
	mu       sync.Mutex
	numbered int64
	requests map[*reuse]struct{}
}

// begin notes a request.
func (t *underWay) begin(r *reuse) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.requests == nil {
		t.requests = map[*reuse]struct{}{}
	}
	t.numbered++
	r.number, r.done = t.numbered, make(chan struct{})
	t.requests[r] = struct{}{}
}

// end lets those go on that wait for the token of a request, and returns the number of the last one that has
// come before that.
func (t *underWay) end(r *reuse) (last int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, is := t.requests[r]; is {
		delete(t.requests, r)
		close(r.done)
	}
	return t.numbered
}

// other returns a request for the same that has come up to that number; nil if there is none.
func (t *underWay) other(r *reuse, last int64) *reuse {
	t.mu.Lock()
	defer t.mu.Unlock()
	for o := range t.requests {
		if o.id == r.id && o.number <= last {
			return o
		}
	}
	return nil
}

// reusing is over_limit: reuse for one request. It implements [judgement.Reuse].
type reusing struct {
	*Service
	x *issuance
}

// Begin begins the part of over_limit: reuse in the request, if the client has it. The caller calls endTurn whatever
// becomes of the request.
func (s reusing) Begin(e *ratelimit.Effective) {
	x := s.x
	if x.grant != clientcfg.ClientCredentials || !e.Reuses() {
		return
	}
	in := s.last.in(e.Mode)
	id := in.set(x.client.ID, x.client, x.credential, x.scopes, time.Time{})
	x.reuse = &reuse{in: in, id: id, enforce: e.Mode == ratelimit.Enforce}
	in.underWayFor(id).begin(x.reuse)
}

// endTurn lets those go on who wait for the token of this request.
func (x *issuance) endTurn() {
	if r := x.reuse; r != nil {
		r.in.underWayFor(r.id).end(r)
	}
}

// Instead changes the outcome of a request that is over the limit if there is a token to be handed out again, or would
// be in dry-run.
func (s reusing) Instead(ctx context.Context, d *ratelimit.Decision) {
	x, r := s.x, s.x.reuse
	if r == nil {
		return
	}
	// In dry-run, the token of a request that enforce would deny becomes no last one.
	r.keeps = d.Outcome == ratelimit.Allowed
	if d.Outcome != ratelimit.Denied && d.Outcome != ratelimit.WouldDeny {
		return
	}
	others := r.in.underWayFor(r.id)
	last := others.end(r)
	found := s.findAgain(x) // who has ended before that has kept its token
	for !found && ctx.Err() == nil {
		before := others.other(r, last)
		if before == nil {
			break
		}
		select {
		case <-before.done:
		case <-ctx.Done():
		}
		found = s.findAgain(x)
	}
	if found {
		d.Outcome, d.RetryAfter = ratelimit.Reused, 0
		if !r.enforce {
			d.Outcome = ratelimit.WouldReuse
		}
	}
}

// findAgain finds the token to be handed out.
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

// findLast returns the last token of the set, if it is good and would be known if it was revoked.
func (s *Service) findLast(in *lastTokens, c *clientcfg.Client, id tokenSet) (lastToken, bool) {
	now := s.opts.Now()
	if now.Sub(*s.last.read.Load()) > revocationsKnownFor {
		return lastToken{}, false
	}
	return in.find(c, id, now)
}

// again is the answer with the token that was issued before, and what is left of its life.
func (s *Service) again(x *issuance, fields RateLimit) TokenResponse {
	t := &x.reuse.again
	return TokenResponse{
		AccessToken: t.text, ExpiresIn: t.expires.Sub(s.opts.Now()).Truncate(time.Second), Scopes: x.scopes, RateLimit: fields,
	}
}

// keep keeps the token that was issued, for requests over the limit. In dry-run and for a candidate it keeps
// only that there was one, which counts no more once it is revoked.
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
	expires = expires.Truncate(time.Second) // tokens carry times in seconds
	return lastToken{
		stamp: x.client.Stamp, version: x.client.Version,
		expires: expires, until: ratelimit.ReusedUntil(expires, s.opts.AccessTokenLifetime),
	}
}

// Tried reports whether the client would have got its last token again under the limits that are
// tried out, which deny the request. Where they admit it, it notes that a token is issued: at once, because
// the limits in force may deny the request, and keep adds which one. The mode does not matter.
func (s reusing) Tried(e *ratelimit.Effective, trial *clientcfg.Trial, denies bool) bool {
	x := s.x
	if x.grant != clientcfg.ClientCredentials || e.OverLimit != ratelimit.OverLimitReuse {
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
