package grants

import (
	"cmp"
	"net/netip"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// authenticate proves who the client is, and by which of its secrets (RFC 6749 2.3 and 3.2.1). All failures look alike to the
// client. Too many of them from one address are answered with *[LimitedError] instead, but right
// credentials are never refused: they are cheap to check and too long to guess, and another client
// behind the same gateway must not suffer.
func (s *Service) authenticate(c Credentials, remote netip.Addr) (*clientcfg.Client, secret.Digest, error) {
	if c.ClientID == "" {
		return nil, secret.Digest{}, fail(InvalidClient, "Client authentication is required.")
	}
	client, ok := s.opts.Clients.Client(c.ClientID)
	if !ok {
		client = &clientcfg.Client{} // which nothing proves to be; it takes as long as for one that exists
	}
	now := s.opts.Now()
	used, proven := proves(client, &c, now)
	if !proven || !client.Public && c.Method == AuthNone {
		return nil, secret.Digest{}, s.failedClient(c.ClientID, place{remote, c.Page.foreign(client)})
	}
	if !used.IsZero() && s.opts.SecretUsed != nil {
		s.opts.SecretUsed(client.ID, used, now)
	}
	return client, used, nil
}

func (s *Service) failedClient(id string, at place) error {
	if err := s.clientFailures.count(s.opts.Clock(), at, id); err != nil {
		return err
	}
	return fail(InvalidClient, "Client authentication failed.")
}

// proves reports whether the secret is one of the client's, and which, in constant time: both spellings are compared
// with both secrets, also if there is no other one. A public client has none: presenting one is a mistake that
// must not pass unnoticed. An empty secret counts as none, whichever way it was sent (RFC 6749 2.3.1):
// some libraries put it into a Basic header.
func proves(client *clientcfg.Client, c *Credentials, now time.Time) (used secret.Digest, ok bool) {
	if client.Public {
		return secret.Digest{}, c.Secret == ""
	}
	decoded, raw := secret.DigestOf(c.Secret), secret.DigestOf(cmp.Or(c.RawSecret, c.Secret))
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
