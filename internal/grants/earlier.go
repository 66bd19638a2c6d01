package grants

import (
	"context"
	"errors"

	"oauth-server/internal/secret"
)

// Refresh tokens of earlier releases are 43 random characters with a record each, which a successor
// claims. They are good until they expire; the first refresh of one makes it generation 0 of a family.
// When the last has expired, RefreshMaxAge after the upgrade, all that is named earlier can go.

// successorOf is the purpose for which earlier releases derive the successor of a refresh token.
const successorOf = "refresh token successor"

// findEarlier is find for the form of earlier releases. The record of the token is asked for first,
// also if there is a family: a code is the secret of a family too, and has this form.
func (s *Service) findEarlier(ctx context.Context, text string) (*presented, error) {
	token := refreshToken{secret: text}
	stored, err := s.store.EarlierToken(ctx, token.digest())
	if err != nil {
		return nil, err
	}
	p := &presented{text: text, token: token, family: stored.asFamily(0), earlier: !stored.Claimed}
	if p.earlier {
		return p, nil
	}
	switch family, err := s.store.Family(ctx, token.digest()); {
	case err == nil:
		p.family = family
		return p, nil
	case !errors.Is(err, ErrNotFound):
		return nil, err
	}
	return p, s.findSuccessor(ctx, p)
}

// findSuccessor looks for the successor that an earlier release has derived. That is generation 1 of
// what is a family of two tokens then; if it was used, or cannot be found, there are more.
func (s *Service) findSuccessor(ctx context.Context, p *presented) error {
	text := s.opts.Deriver.Derive(successorOf, p.text)
	next, err := s.store.EarlierToken(ctx, secret.DigestOf(text))
	switch {
	case err == nil && !next.Claimed && next.Family == p.family.Family && next.ClientID == p.family.ClientID:
		p.family, p.successor = next.asFamily(1), text
	case err == nil || errors.Is(err, ErrNotFound):
		p.family.Generation = 2
	default:
		return err
	}
	return nil
}

func (t *EarlierToken) asFamily(generation uint32) Family {
	return Family{
		Authorization: t.Authorization, Digest: t.Digest, Generation: generation,
		IssuedAt: t.IssuedAt, ExpiresAt: t.ExpiresAt,
	}
}
