package grants

import (
	"cmp"
	"context"
	"errors"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// find reads the code, or the family of a refresh token. Errors: [store.ErrNotFound].
func (s *Service) find(ctx context.Context, t refreshToken) (*Grant, error) {
	g, err := s.store.Grant(ctx, t.digest())
	if errors.Is(err, store.ErrNotFound) {
		err = cmp.Or(s.hasData(ctx), err)
	}
	return &g, err
}

// findToken is find for the text of a refresh token. It returns [store.ErrNotFound] if this server did
// not issue the token.
func (s *Service) findToken(ctx context.Context, text string) (t refreshToken, g *Grant, err error) {
	t, ok := s.unseal(text)
	if !ok {
		return t, nil, store.ErrNotFound
	}
	g, err = s.find(ctx, t)
	return t, g, err
}

// standing is the state of one generation of a family.
type standing int

const (
	ahead      standing = iota // newer than the stored family, because the store was restored from a backup
	newest                     // the current token
	repeatable                 // the predecessor of the newest token, which was issued within the grace period
	replayed                   // used before
)

// standing returns the standing of a token of that generation. The grace period starts by the clock
// of the instance that issued the newest token, and ends by this instance's clock. If the newest
// token is from the future, its time is trusted up to skew.
func (g *Grant) standing(generation uint32, now time.Time, grace time.Duration) standing {
	age := now.Sub(g.IssuedAt)
	switch {
	case generation > g.Generation:
		return ahead
	case generation == g.Generation:
		return newest
	case generation+1 == g.Generation && grace > 0 && -skew < age && age < grace:
		return repeatable
	}
	return replayed
}

// usable returns nil if the presented refresh token may be used, or if its response may be repeated
// because the client may not have received the first one. A repetition writes nothing. If it races
// with the first use of the successor, it returns the state that it read, and the family still has
// one newest token.
func (s *Service) usable(ctx context.Context, x *issuance) error {
	alive := x.now.Before(s.end(x.found))
	switch x.found.standing(x.sent.generation, x.now, s.opts.RefreshGrace) {
	case newest:
		if alive {
			return nil
		}
		return x.unknown()
	case repeatable:
		if alive {
			x.repeated = true
			return nil
		}
	case ahead:
		return x.unknown()
	case replayed:
	}
	return s.replayed(ctx, x.auth, x.found.ExpiresAt.Sub(x.found.IssuedAt))
}

// claimedMeanwhile handles a code or refresh token that another request has claimed since look. It
// returns nil if the response of that request may be repeated.
func (s *Service) claimedMeanwhile(ctx context.Context, x *issuance) error {
	if x.grant == clientcfg.AuthorizationCode {
		return s.replayed(ctx, x.auth, 0)
	}
	if err := s.lookGrant(ctx, x); err != nil {
		return err
	}
	if err := s.usable(ctx, x); err != nil {
		return err
	}
	if !x.repeated {
		return storeFailed("issue tokens", ErrClaimed) // the record that was read does not show the other claim yet
	}
	s.prepareNext(x)
	return s.checkFamily(ctx, x)
}

// prepareNext sets the refresh token to issue. It sets none if the sign-in is too old for another
// one.
func (s *Service) prepareNext(x *issuance) {
	if x.repeated {
		x.next, x.token = nil, s.seal(x.sent.next())
		return
	}
	var next Grant
	token := x.sent
	switch {
	case x.next != nil && x.found != nil: // a redeemed code
		next = *x.next
	case x.found != nil:
		next = *x.found
	default:
		token.secret = secret.New()
		next = Grant{Authorization: x.auth, Digest: token.digest()}
	}
	token = token.next()
	next.Generation, next.IssuedAt, next.ClientStamp = token.generation, x.now, x.client.Stamp
	next.ExpiresAt = x.now.Add(s.opts.RefreshTokenLifetime)
	next.ExpiresAt = s.end(&next)
	if x.now.Before(next.ExpiresAt) {
		x.next, x.token = &next, s.seal(token)
	}
}

// end returns when the family's newest refresh token expires: at its stored expiry, or earlier at
// the maximum age, which may have been configured since.
func (s *Service) end(g *Grant) time.Time {
	if limit := g.AuthTime.Add(s.opts.RefreshMaxAge); limit.Before(g.ExpiresAt) {
		return limit
	}
	return g.ExpiresAt
}
