package grants

import (
	"cmp"
	"errors"
	"net/netip"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// authenticate verifies the client's credentials and returns the client and the secret that it used
// (RFC 6749 2.3 and 3.2.1). All failures look alike to the client. After too many failures from one
// address it returns *[oautherr.LimitedError] for further failures. Correct credentials are never limited:
// they are cheap to check and too long to guess, and other clients behind the same gateway must not
// suffer.
func (s *Service) authenticate(c Credentials, remote netip.Addr) (*clientcfg.Client, secret.Digest, error) {
	if c.ClientID == "" {
		return nil, secret.Digest{}, fail(oautherr.InvalidClient, "Client authentication is required.")
	}
	client, ok := s.opts.Clients.Client(c.ClientID)
	if !ok {
		client = &clientcfg.Client{} // matches no credentials; the check takes as long as for an existing client
	}
	now := s.opts.Now()
	used, proven := proves(client, &c, now)
	if !proven || !client.Public && c.Method == AuthNone {
		return nil, secret.Digest{}, cmp.Or(
			s.clientFailures.Count(s.opts.Clock(), attempts.Place{Addr: remote, Page: c.Page.foreign(client)}, c.ClientID),
			error(fail(oautherr.InvalidClient, "Client authentication failed.")))
	}
	if !used.IsZero() && s.opts.SecretUsed != nil {
		s.opts.SecretUsed(client.ID, used, now)
	}
	return client, used, nil
}

// proves reports whether the secret belongs to the client, and returns the digest of the matching
// secret. It runs in constant time: it compares both spellings with both secrets, even if the
// client has only one. A public client has no secret, so presenting one is a mistake and must fail.
// An empty secret counts as no secret, whichever way it was sent (RFC 6749 2.3.1): some libraries
// put one into a Basic header.
func proves(client *clientcfg.Client, c *Credentials, now time.Time) (used secret.Digest, ok bool) {
	if client.Public {
		return secret.Digest{}, c.Secret == ""
	}
	decoded := secret.DigestOf(c.Secret)
	raw := decoded
	if c.RawSecret != "" {
		raw = secret.DigestOf(c.RawSecret)
	}
	current, former := client.SecretDigest.MatchesDigest(decoded), client.Former.Digest.MatchesDigest(decoded)
	rawCurrent, rawFormer := client.SecretDigest.MatchesDigest(raw), client.Former.Digest.MatchesDigest(raw)
	switch {
	case current || rawCurrent:
		return client.SecretDigest, true
	case (former || rawFormer) && now.Before(client.Former.Until):
		return client.Former.Digest, true
	}
	return secret.Digest{}, false
}

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
