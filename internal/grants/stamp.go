package grants

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/oautherr"
	"oauth-server/internal/secret"
)

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// storedClient reads a client from the store. It returns nil if there is no readable client.
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

// catchUp is how long an instance takes to read a client's change.
const catchUp = 2 * time.Second

// checkClient refuses a code or a refresh token that belongs to a different client with the same
// client_id, or dates from before the client's last revocation. If the stamp is newer than this
// instance's client, another instance already knew of a revocation that this one has yet to read.
// Tokens issued now would count as issued before it, so checkClient asks the client to retry.
func checkClient(client *clientcfg.Client, what string, stamp secret.Stamp) error {
	switch {
	case !client.Stamp.Accepts(stamp):
		return fail(oautherr.InvalidGrant, "The "+what+" is not known, or has expired.")
	case client.Stamp.Behind(stamp):
		return &Error{
			Code: oautherr.TemporarilyUnavailable, RetryAfter: catchUp,
			Description: "The client was changed a moment ago; retry after " + oautherr.Seconds(catchUp) + ".",
		}
	}
	return nil
}

// signedIn reports whether the user exists, is the same user who signed in (not a later one with
// the same name), and has not been revoked since. It reads the store each time, so a revocation
// takes effect at once on every instance.
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
