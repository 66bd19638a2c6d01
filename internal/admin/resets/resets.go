// Package resets carries out resets of counters in one process: the admin API appends a reset to the
// trail of changes, and every instance follows it here. An instance drops its unwritten counts, and
// then removes the stored ones, so after the last instance none of the old counts remain.
package resets

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// Forgetter forgets counts in this process. [counting.Counters] implements it.
type Forgetter interface {
	Reset(k ratelimit.Key) bool
	ResetClient(clientID string) int
}

// Eraser removes counts from the store.
type Eraser interface {
	// EraseCounters removes all counters of the client. If username is not nil, it removes only the
	// counters of that username. Missing counters are not an error.
	EraseCounters(ctx context.Context, clientID string, username *string) error
}

// Resets carries out resets in this process.
type Resets struct {
	counters Forgetter
	store    Eraser
	log      *slog.Logger
	wake     chan struct{}
	erasing  chan struct{} // holds a value while one caller erases

	mu    sync.Mutex
	queue []*storedReset
}

// storedReset is a reset that has not been applied to the store yet.
type storedReset struct {
	clientcfg.Reset
	ids []string // clients with counters still to be removed
}

// New returns Resets for the counters of this process and the store that shares them. store
// is nil if they are not shared.
func New(counters Forgetter, store Eraser, log *slog.Logger) *Resets {
	return &Resets{counters: counters, store: store, log: log, wake: make(chan struct{}, 1), erasing: make(chan struct{}, 1)}
}

// CarryOut carries out a reset of the trail; see [clientcfg.PolicyOptions].
func (r *Resets) CarryOut(reset clientcfg.Reset) {
	ids := []string{reset.ClientID, ratelimit.CandidateID(reset.ClientID)}
	for _, id := range ids {
		r.forget(id, reset.Username)
	}
	if r.store == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, &storedReset{reset, ids})
	select {
	case r.wake <- struct{}{}:
	default: // already awake
	}
}

func (r *Resets) forget(id string, username *string) {
	if username == nil {
		r.counters.ResetClient(id)
	} else {
		r.counters.Reset(ratelimit.Key{ClientID: id, Username: *username})
	}
}

// Run applies resets to the store until ctx ends.
func (r *Resets) Run(ctx context.Context) error {
	for {
		_ = r.Erase(ctx) // fails only when ctx ends
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		}
	}
}

// eraseRetry is the pause after a store failure.
const eraseRetry = time.Second

// Erase applies all resets so far to the store. After a failure it tries again, until ctx ends.
func (r *Resets) Erase(ctx context.Context) error {
	select {
	case r.erasing <- struct{}{}:
		defer func() { <-r.erasing }()
	case <-ctx.Done():
		return fmt.Errorf("resets: wait for the store: %w", ctx.Err())
	}
	for {
		err := r.erase(ctx)
		if err == nil {
			return nil
		}
		r.log.LogAttrs(ctx, slog.LevelWarn, "reset counters are still in the store", slog.Any("error", err))
		if !background.Sleep(ctx, eraseRetry) {
			return err
		}
	}
}

// erase erases the counters of every queued reset. It stops at the first error and keeps the rest
// of that reset in the queue. It skips counters that were already erased, because they contain only
// new counts.
func (r *Resets) erase(ctx context.Context) error {
	for reset := r.first(); reset != nil; reset = r.first() {
		for len(reset.ids) > 0 {
			if err := r.store.EraseCounters(ctx, reset.ids[0], reset.Username); err != nil {
				return err
			}
			r.forget(reset.ids[0], reset.Username) // counts that were read from the store in between
			reset.ids = reset.ids[1:]
		}
		r.mu.Lock()
		r.queue = r.queue[1:]
		r.mu.Unlock()
	}
	return nil
}

// first returns the oldest reset that has not been applied to the store, or nil.
func (r *Resets) first() *storedReset {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return nil
	}
	return r.queue[0]
}
