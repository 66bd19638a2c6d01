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

// Uses collects in memory when secrets were used, until Flush stores it, so that no request waits for
// the store. Only secrets of registered clients are used, so it is bounded by their number. It is safe
// for concurrent use.
type Uses struct {
	store SecretUses

	mu      sync.Mutex
	pending map[secret.Digest]SecretUse
}

// NewUses returns Uses for a store.
func NewUses(store SecretUses) *Uses {
	return &Uses{store: store, pending: map[secret.Digest]SecretUse{}}
}

// Used notes a use, to the minute.
func (u *Uses) Used(clientID string, d secret.Digest, at time.Time) {
	at = at.UTC().Truncate(time.Minute)
	u.mu.Lock()
	defer u.mu.Unlock()
	if noted, ok := u.pending[d]; !ok || noted.At.Before(at) {
		u.pending[d] = SecretUse{ClientID: clientID, Digest: d, At: at}
	}
}

// Flush stores what was noted since the last time, one write for each secret that was used. What could
// not be stored is kept.
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
