package grants

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// since returns the time from which on something without a stamp must be issued to a client, or a user
// have signed in, to be worth anything: neither before there was that client or user, nor before the
// last revocation. Clocks that differ are not allowed for here: a grace would hand to a namesake what
// was issued to the one before. The revocation adds a margin (registry.RevokeClient).
func since(created, notBefore time.Time) time.Time {
	return later(created.Truncate(time.Second), notBefore) // tokens carry times in seconds
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// outlives reports whether the client is the one that something was issued to, and not another of
// the same client_id that was registered later, and was not revoked since, as signedIn does for users.
// If the client has no stamp here, the one that is carried may be from a revocation that this instance
// has yet to learn of, or of a deleted client: the store is asked.
func (s *Service) outlives(ctx context.Context, client *clientcfg.Client, stamp secret.Stamp, issued time.Time) (bool, error) {
	if client.Stamp.IsZero() && client.Stamp.Behind(stamp) {
		stored, err := s.storedClient(ctx, client.ID)
		if stored == nil || err != nil {
			return false, err
		}
		client = stored
	}
	return client.Stamp.Accepts(stamp, !issued.Before(since(client.CreatedAt, client.NotBefore))), nil
}

// storedClient reads a client from the store; nil if there is none that can be read.
func (s *Service) storedClient(ctx context.Context, id string) (*clientcfg.Client, error) {
	stored, err := clientcfg.FindClient(ctx, s.store, id)
	switch {
	case errors.Is(err, clientcfg.ErrNotFound), errors.Is(err, clientcfg.ErrUnreadableClient):
		return nil, nil //nolint:nilnil // as of one that is not there
	case err != nil:
		return nil, storeFailed("read client", err)
	}
	return &stored, nil
}

// catchUp is how long an instance takes to read a change of a client.
const catchUp = 2 * time.Second

// checkClient refuses a code or a refresh token of another client of the same client_id, or of before
// the last revocation. If this instance has yet to learn of a revocation that another one knew, it must
// not issue anything for it: that would be from before.
func (s *Service) checkClient(ctx context.Context, client *clientcfg.Client, what string, stamp secret.Stamp, issued time.Time) error {
	ok, err := s.outlives(ctx, client, stamp, issued)
	switch {
	case err != nil:
		return err
	case !ok:
		return fail(InvalidGrant, "The "+what+" is not known, or has expired.")
	case client.Stamp.Behind(stamp):
		return &Error{
			Code: TemporarilyUnavailable, RetryAfter: catchUp,
			Description: "The client was changed a moment ago; retry after " + inSeconds(catchUp) + ".",
		}
	}
	return nil
}

// signedIn reports whether the user exists, is the one who signed in then and not another of the same
// name who was added later, and has not been revoked since. The store is read each time, so a revocation
// acts at once on every instance.
func (s *Service) signedIn(ctx context.Context, name string, stamp secret.Stamp, at time.Time) (bool, error) {
	user, err := s.store.User(ctx, name)
	if errors.Is(err, ErrNotFound) {
		err = s.reallyNotFound(ctx)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, storeFailed("read user", err)
	}
	return user.Accepts(stamp, at), nil
}
