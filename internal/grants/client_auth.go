package grants

import (
	"context"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// authenticate proves who the client is (RFC 6749 2.3 and 3.2.1). All failures
// look alike to the client.
func (s *Service) authenticate(_ context.Context, c Credentials) (*clientcfg.Client, error) {
	if c.ClientID == "" {
		return nil, fail(InvalidClient, "Client authentication is required.")
	}
	client, ok := s.opts.Clients.Client(c.ClientID)
	if !ok {
		_ = secret.DigestOf(c.Secret) // as long as for a client that exists
		return nil, fail(InvalidClient, "Client authentication failed.")
	}
	if !client.Public && c.Method == AuthNone || !proves(client, c.Secret) {
		return nil, fail(InvalidClient, "Client authentication failed.")
	}
	return client, nil
}

// proves reports whether the secret is that of the client, in constant time. A
// public client has none: presenting one is a mistake that must not pass
// unnoticed. An empty secret counts as none, whichever way it was sent
// (RFC 6749 2.3.1): some libraries put it into a Basic header.
func proves(client *clientcfg.Client, presented string) bool {
	if client.Public {
		return presented == ""
	}
	return client.SecretDigest.Matches(presented)
}
