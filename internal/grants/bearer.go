package grants

import (
	"context"
	"errors"

	"oauth-server/internal/keys"
)

// ErrBearer is what [Service.Bearer] returns, wrapped, for anything but a good
// token.
var ErrBearer = errors.New("grants: the access token is not valid")

// Bearer verifies an access token that is presented to an API of this server
// itself (RFC 6750): signed by us, not expired, not revoked, its client and its
// user still there. Whether it is meant for that API and what its scopes allow
// is for the caller to judge. Errors: [ErrBearer]; *[Error] where the store
// cannot be asked.
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
