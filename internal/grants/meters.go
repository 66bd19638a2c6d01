package grants

import (
	"cmp"
	"errors"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/oautherr"
	"oauth-server/internal/ratelimit"
)

// grantKeys returns the keys that an invalid code or refresh token counts against: its source
// address, and the client at that address. A client with a secret has authenticated, so failures of
// other clients at its address do not affect it.
func (s *Service) grantKeys(client *clientcfg.Client, at attempts.Place) []ratelimit.Key {
	from := at.Source()
	ofClient := ratelimit.Key{ClientID: from, Username: client.ID}
	if !client.Public {
		s.invalidGrants.Prove(s.opts.Clock(), ofClient)
		return []ratelimit.Key{ofClient}
	}
	return []ratelimit.Key{{ClientID: from}, ofClient}
}

// metered runs look, which reads a code or a refresh token from the store. If too many were
// invalid, it reads nothing and returns an error, even for a valid code or token.
func (s *Service) metered(client *clientcfg.Client, at attempts.Place, look func() error) error {
	const limit, reason = "failed_attempts.grants", "Too many invalid codes and refresh tokens from this address"
	keys := s.grantKeys(client, at)
	if err := attempts.TooMany(s.invalidGrants.Wait(s.opts.Clock(), keys...), limit, reason); err != nil {
		return err
	}
	err := look()
	if err == nil {
		s.invalidGrants.Prove(s.opts.Clock(), keys...)
	}
	var failed *Error
	if errors.As(err, &failed) && failed.Code == oautherr.InvalidGrant {
		return cmp.Or(attempts.TooMany(s.invalidGrants.Take(s.opts.Clock(), keys...), limit, reason), err)
	}
	return err
}

// meteredQuery counts a client's request to an endpoint. Anyone can send requests as a public
// client, so these count by source address too.
func (s *Service) meteredQuery(m *attempts.Meter, client *clientcfg.Client, q *TokenQuery) error {
	key := ratelimit.Key{ClientID: client.ID}
	if client.Public {
		key.Username = attempts.Place{Addr: q.Remote, Page: q.Credentials.Page.foreign(client)}.Source()
	} else {
		m.Prove(s.opts.Clock(), key)
	}
	return attempts.TooMany(m.Take(s.opts.Clock(), key), "inspection", "Too many requests of this client to this endpoint")
}
