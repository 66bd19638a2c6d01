package grants

import (
	"context"
	"errors"

	"oauth-server/internal/keys"
)

// ErrBearer is returned, wrapped, by [Service.Bearer] for anything but a valid token.
var ErrBearer = errors.New("grants: the access token is not valid")

// Bearer verifies an access token that is presented to an API of this server itself (RFC 6750): it
// is signed by this server, not expired and not revoked, and its client and its user still exist.
// The caller judges whether the token is meant for its API and what the scopes allow. Errors:
// [ErrBearer]; *[Error] if the store fails.
func (s *Service) Bearer(ctx context.Context, token string) (keys.Claims, error) {
	c, err := s.opts.Signer.Verify(token, s.opts.Now())
	if err != nil {
		return keys.Claims{}, errors.Join(ErrBearer, err)
	}
	in, err := s.introspectClaims(ctx, c)
	switch {
	case err != nil:
		return keys.Claims{}, err
	case !in.Active:
		return keys.Claims{}, ErrBearer
	}
	return c, nil
}
