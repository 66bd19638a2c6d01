package grants

import (
	"encoding/binary"
	"sync"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// reuse is the part that over_limit: reuse has in a request: over its limit, the client gets the token that
// it got last for the same.
//
// Requests for the same may be under way at once, and one that is denied must find the token that another,
// admitted before it, is about to issue. So each holds its turn, shared, from before it is decided until
// it has issued its token or was denied. One that was denied and finds no token takes the turn for itself
// once, which waits for those before it: for the time that a signature takes.
type reuse struct {
	id      tokenSet
	enforce bool          // the token itself is handed out
	turn    *sync.RWMutex // held, shared; nil: no more
	again   lastToken     // to be handed out, if the outcome is Reused
}

// beginReuse begins the part of over_limit: reuse in the request, if the client has it. The caller
// calls endTurn whatever becomes of the request.
func (s *Service) beginReuse(x *issuance, e *ratelimit.Effective) {
	if x.grant != clientcfg.ClientCredentials || !e.Reuses() {
		return
	}
	id := s.last.set(x.client.ID, x.client, x.credential, x.scopes, time.Time{})
	turn := &s.last.turns[int(binary.LittleEndian.Uint16(id[:]))%len(s.last.turns)]
	turn.RLock()
	x.reuse = &reuse{id: id, enforce: e.Mode == ratelimit.Enforce, turn: turn}
}

// endTurn lets those go on who wait for the token of this request.
func (x *issuance) endTurn() {
	if x.reuse != nil && x.reuse.turn != nil {
		x.reuse.turn.RUnlock()
		x.reuse.turn = nil
	}
}

// reuseInstead changes the outcome of a request that is over the limit if there is a token to be handed
// out again, or would be in dry-run.
func (s *Service) reuseInstead(x *issuance, d *ratelimit.Decision) {
	r := x.reuse
	switch {
	case r == nil:
		return
	case d.Outcome == ratelimit.Allowed && !r.enforce:
		s.noteToken(x, r.id) // that of a request which enforce would deny takes no place
		x.endTurn()
	case d.Outcome == ratelimit.Denied || d.Outcome == ratelimit.WouldDeny:
		if !s.findAgain(x) {
			turn := r.turn
			x.endTurn()
			turn.Lock() // once those before this one have issued their tokens
			found := s.findAgain(x)
			turn.Unlock()
			if !found {
				return
			}
		}
		x.endTurn()
		d.Outcome, d.RetryAfter = ratelimit.Reused, 0
		if !r.enforce {
			d.Outcome = ratelimit.WouldReuse
		}
	}
}

// findAgain finds the token to be handed out.
func (s *Service) findAgain(x *issuance) bool {
	t, ok := s.last.find(x.client, x.reuse.id, s.opts.Now())
	if !ok || x.reuse.enforce && (t.text == "" || !s.opts.Signer.Published(t.text)) {
		return false
	}
	if x.reuse.enforce {
		x.reuse.again = t
	}
	return true
}

// again is the answer with the token that was issued before, and what is left of its life.
func (s *Service) again(x *issuance, fields RateLimit) TokenResponse {
	t := &x.reuse.again
	return TokenResponse{
		AccessToken: t.text, ExpiresIn: t.expires.Sub(s.opts.Now()).Truncate(time.Second), Scopes: x.scopes, RateLimit: fields,
	}
}

// keep keeps the token that was issued, for requests over the limit.
func (s *Service) keep(x *issuance, token string) {
	if x.reuse == nil || !x.reuse.enforce {
		return
	}
	t := s.lastToken(x, x.reuse.id, x.claims.ExpiresAt)
	t.text, t.jti = token, x.claims.ID
	s.last.put(x.client.ID, t)
}

// noteToken notes that a token of the set would have been issued now, without the token.
func (s *Service) noteToken(x *issuance, id tokenSet) {
	s.last.put(x.client.ID, s.lastToken(x, id, x.now.Add(s.opts.AccessTokenLifetime)))
}

func (s *Service) lastToken(x *issuance, id tokenSet, expires time.Time) lastToken {
	expires = expires.Truncate(time.Second) // tokens carry times in seconds
	return lastToken{
		id: id, stamp: x.client.Stamp, version: x.client.Version,
		expires: expires, until: reusedUntil(expires, s.opts.AccessTokenLifetime),
	}
}

// candidateReuses reports whether the client would have got its last token again under the limits that are
// tried out, which deny the request. Where they admit it, it notes that a token is issued.
func (s *Service) candidateReuses(x *issuance, trial *clientcfg.Trial, denies bool) bool {
	if x.reuse == nil {
		return false
	}
	id := s.last.set(trial.ClientID, x.client, x.credential, x.scopes, trial.Since)
	if !denies {
		s.noteToken(x, id)
		return false
	}
	_, ok := s.last.find(x.client, id, s.opts.Now())
	return ok
}
