package gateway

import (
	"crypto/sha256"
	"net/netip"

	"oauth-server/internal/gateway/tokenrequest"
	"oauth-server/internal/limiter"
)

// credentials returns the IDs that requests are counted under until their client and user are
// proven: the client's secret, or its address if it sent no secret, and the user's password.
func (g *Gateway) credentials(said *tokenrequest.Request, shown *tokenrequest.Credentials, remote netip.Addr) *limiter.Credentials {
	by := &limiter.Credentials{Secret: !shown.Secret.IsZero(), Network: limiter.NetworkOf(remote)}
	if by.Secret {
		by.Client = g.id("secret", said.ClientID, "", shown.Secret[:])
	} else {
		by.Client = g.id("address", said.ClientID, limiter.SourceOf(remote), nil)
	}
	if said.Username != "" {
		by.User = g.id("password", said.ClientID, said.Username, shown.Password[:])
	}
	return by
}

// id returns an ID for a credential. The hash is keyed with a secret of this process, so a memory
// dump contains no hash from which the credential could be guessed.
func (g *Gateway) id(kind, clientID, name string, digest []byte) limiter.ID {
	var space [256]byte
	text := append(space[:0], g.key[:]...)
	for _, part := range []string{kind, clientID, name} {
		text = append(append(text, part...), 0) // no name contains a NUL
	}
	sum := sha256.Sum256(append(text, digest...))
	return limiter.ID(sum[:])
}
