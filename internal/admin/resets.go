package admin

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// resetCounters forgets the counts of a client, or of one of its users, on all instances:
// the reset is the next entry of the trail of the policies.
func (s *Server) resetCounters(c *call) error {
	if err := c.parameters("username", "reason"); err != nil {
		return err
	}
	id, err := c.clientID()
	if err != nil {
		return err
	}
	if err := s.registered(c.Request().Context(), id); err != nil {
		return err
	}
	reason, err := c.reason()
	if err != nil {
		return err
	}
	user, err := s.username(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), applyWithin)
	defer cancel()
	_, err = s.o.Policies.Change(ctx, func(*clientcfg.PolicySnapshot) (clientcfg.PolicyEntry, error) {
		reset, err := clientcfg.ResetCounters(id, user)
		return clientcfg.PolicyEntry{Changes: []clientcfg.Change{reset}, AuditEntry: clientcfg.AuditEntry{
			ID: secret.ID(), At: s.o.Now().UTC().Truncate(time.Millisecond), Actor: c.caller.actor(), Action: actionReset,
			Target: reset.Target, Reason: reason, Instance: s.o.Instance(), Before: reset.Before, After: reset.After,
		}}, err
	})
	if err != nil {
		return err
	}
	c.Response().WriteHeader(http.StatusNoContent)
	return nil
}

// Forgetter forgets counts in this process. [ratelimit.Counters] is one.
type Forgetter interface {
	Reset(k ratelimit.Key) bool
	ResetClient(clientID string) int
}

// Eraser removes counts from the store.
type Eraser interface {
	// EraseCounters removes the counters of the client: all of them, or those of one
	// username if it is not nil. Counters that do not exist are no error.
	EraseCounters(ctx context.Context, clientID string, username *string) error
}

// Resets carries out resets in this process. Every instance drops the counts that it has
// not yet written, and then removes those that are stored, so that the last instance to do
// so leaves none of the old counts.
type Resets struct {
	counters Forgetter
	store    Eraser
	log      *slog.Logger
	wake     chan struct{}

	mu    sync.Mutex
	queue []clientcfg.Reset
}

// NewResets takes the counters of this process and the store that they are shared through;
// nil if they are not shared.
func NewResets(counters Forgetter, store Eraser, log *slog.Logger) *Resets {
	return &Resets{counters: counters, store: store, log: log, wake: make(chan struct{}, 1)}
}

// Adopted carries out the resets that are new in a snapshot; see [clientcfg.PolicyOptions].
func (r *Resets) Adopted(_, next *clientcfg.PolicySnapshot) {
	for _, reset := range next.Resets() {
		r.forget(reset)
		r.enqueue(reset)
	}
}

// forget drops the keys of the client and of its candidate.
func (r *Resets) forget(reset clientcfg.Reset) {
	for _, id := range []string{reset.ClientID, clientcfg.CandidateID(reset.ClientID)} {
		if reset.Username == nil {
			r.counters.ResetClient(id)
		} else {
			r.counters.Reset(ratelimit.Key{ClientID: id, Username: *reset.Username})
		}
	}
}

func (r *Resets) enqueue(reset clientcfg.Reset) {
	if r.store == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, reset)
	select {
	case r.wake <- struct{}{}:
	default: // already awake
	}
}

// eraseRetry is the pause after a failure of the store.
const eraseRetry = time.Second

// Run removes from the store what was reset, until ctx ends.
func (r *Resets) Run(ctx context.Context) error {
	for {
		var retry <-chan time.Time
		if err := r.erase(ctx); err != nil {
			r.log.LogAttrs(ctx, slog.LevelWarn, "reset counters are still in the store", slog.Any("error", err))
			retry = time.After(eraseRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-retry:
		}
	}
}

// erase erases the counters of every queued reset. It stops at the first error and leaves
// that reset in the queue.
func (r *Resets) erase(ctx context.Context) error {
	for {
		r.mu.Lock()
		if len(r.queue) == 0 {
			r.mu.Unlock()
			return nil
		}
		reset := r.queue[0]
		r.mu.Unlock()
		for _, id := range []string{reset.ClientID, clientcfg.CandidateID(reset.ClientID)} {
			if err := r.store.EraseCounters(ctx, id, reset.Username); err != nil {
				return err
			}
		}
		r.forget(reset) // counts that were read from the store meanwhile
		r.mu.Lock()
		r.queue = r.queue[1:]
		r.mu.Unlock()
	}
}
