package watched

import (
	"context"
	"errors"

	"oauth-server/internal/clientcfg"
)

// Observer measures operations. It must be safe for concurrent use.
type Observer interface {
	// Begin is called before the operation, which gets the context that it returns; end is called
	// after it, with whether the store failed.
	Begin(ctx context.Context, operation string) (_ context.Context, end func(failed bool))
}

// answers are errors that are results: the store has not failed.
var answers = []error{
	clientcfg.ErrNotFound, clientcfg.ErrExists, clientcfg.ErrConflict, clientcfg.ErrUnreadableClient,
	context.Canceled, // the caller cancelled
}

// Failed reports whether an error of a store is a failure of it, and not an answer or a caller that has gone.
func Failed(err error) bool {
	if err == nil {
		return false
	}
	for _, answer := range answers {
		if errors.Is(err, answer) {
			return false
		}
	}
	return true
}
