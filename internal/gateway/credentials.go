package gateway

import (
	"crypto/sha256"
	"net/netip"

	"oauth-server/internal/gateway/tokenrequest"
	"oauth-server/internal/judgement"
	"oauth-server/internal/network"
)

// credentials returns what a request is held by until its client and its user are proven.
func (g *Gateway) credentials(said *tokenrequest.Request, shown *tokenrequest.Credentials, remote netip.Addr) *judgement.Credentials {
	by := &judgement.Credentials{Secret: !shown.Secret.IsZero(), Network: judgement.NetworkOf(remote)}
	if by.Secret {
		by.Client = g.id("secret", said.ClientID, "", shown.Secret[:])
	} else {
		by.Client = g.id("address", said.ClientID, network.Source(remote), nil)
	}
	if said.Username != "" {
		by.User = g.id("password", said.ClientID, said.Username, shown.Password[:])
	}
	return by
}

// id returns what stands for something that a client shows. Its key is of this process: a dump of memory has no hash by which
// the secret could be guessed.
func (g *Gateway) id(kind, clientID, name string, digest []byte) judgement.ID {
	var space [256]byte
	text := append(space[:0], g.key[:]...)
	for _, part := range []string{kind, clientID, name} {
		text = append(append(text, part...), 0) // no name has one
	}
	sum := sha256.Sum256(append(text, digest...))
	return judgement.ID(sum[:])
}
