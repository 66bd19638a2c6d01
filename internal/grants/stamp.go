package grants

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// storedClient reads a client from the store; nil if there is none that can be read.
func (s *Service) storedClient(ctx context.Context, id string) (*clientcfg.Client, error) {
	stored, err := s.store.Client(ctx, id)
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
func checkClient(client *clientcfg.Client, what string, stamp secret.Stamp) error {
	switch {
	case !client.Stamp.Accepts(stamp):
		return fail(InvalidGrant, "The "+what+" is not known, or has expired.")
	case client.Stamp.Behind(stamp):
		return &Error{
			Code: TemporarilyUnavailable, RetryAfter: catchUp,
			Description: "The client was changed a moment ago; retry after " + inSeconds(catchUp) + ".",
		}
	}
	return nil
}

// signedIn reports whether the user exists, is the one who signed in and not another of the same name who
// was added later, and has not been revoked since. The store is read each time, so a revocation acts at
// once on every instance.
func (s *Service) signedIn(ctx context.Context, name string, stamp secret.Stamp) (bool, error) {
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
	return user.Stamp.Accepts(stamp), nil
}
