package grants

import (
	"context"
	"errors"

	"oauth-server/internal/keys"
)

// ErrBearer is wrapped in the error of [Service.Bearer] for an invalid token.
var ErrBearer = errors.New("grants: the access token is not valid")

// Bearer verifies an access token presented to an API of this server itself (RFC 6750). The token
// must be signed by this server, not expired and not revoked, and its client and user must still
// exist. The caller checks the audience and the scopes. Errors: [ErrBearer]; *[Error] if the store
// fails.
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
