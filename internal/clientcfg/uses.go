package clientcfg

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/secret"
)

// Uses collects in memory when secrets were used until Flush stores it, so no request waits for the
// store. It only contains secrets of registered clients, so their number bounds it. It is safe for
// concurrent use.
type Uses struct {
	store SecretUses

	mu      sync.Mutex
	pending map[secret.Digest]SecretUse
}

// NewUses returns Uses for a store.
func NewUses(store SecretUses) *Uses {
	return &Uses{store: store, pending: map[secret.Digest]SecretUse{}}
}

// Used records a use, rounded down to the minute.
func (u *Uses) Used(clientID string, d secret.Digest, at time.Time) {
	at = at.UTC().Truncate(time.Minute)
	u.mu.Lock()
	defer u.mu.Unlock()
	if noted, ok := u.pending[d]; !ok || noted.At.Before(at) {
		u.pending[d] = SecretUse{ClientID: clientID, Digest: d, At: at}
	}
}

// Flush stores the uses recorded since the last call, one write for each secret. It keeps uses that
// could not be stored.
func (u *Uses) Flush(ctx context.Context) error {
	u.mu.Lock()
	noted := u.pending
	u.pending = map[secret.Digest]SecretUse{}
	u.mu.Unlock()
	if len(noted) == 0 {
		return nil
	}
	err := u.store.RecordUses(ctx, slices.Collect(maps.Values(noted)))
	if err == nil {
		return nil
	}
	for _, use := range noted {
		u.Used(use.ClientID, use.Digest, use.At)
	}
	return fmt.Errorf("clientcfg: record uses of secrets: %w", err)
}
