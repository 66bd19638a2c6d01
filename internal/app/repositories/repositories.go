// Package repositories combines the repositories of all domains on one backend into one value.
// Commands and the admin API use most of them.
package repositories

import (
	"context"

	"oauth-server/internal/accounts"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
)

// Backend is a store backend with counters. The file and MongoDB implement it.
type Backend interface {
	store.Backend
	exchange.Store
	// CountersOf returns at most limit counters of a client, in any order: all counters, or only
	// the counters of one username if it is not nil.
	CountersOf(ctx context.Context, clientID string, username *string, limit int) ([]exchange.Record, error)
	// EraseCounters removes the counters of a client: all counters, or only the counters of one
	// username if it is not nil.
	EraseCounters(ctx context.Context, clientID string, username *string) error
}

// All are the repositories of all domains.
type All struct {
	Follower *store.Follower
	*clientcfg.Registrations
	*clientcfg.AuditTrail
	*keys.Repository
	*accounts.Users
	*grantsRepository
}

type grantsRepository = grants.Repository // renamed, because keys has a Repository too

// On returns the repositories on a backend.
func On(ctx context.Context, b store.Backend) (All, error) {
	f, err := store.NewFollower(ctx, b)
	if err != nil {
		return All{}, err
	}
	return Of(f), nil
}

// Of is [On] with a follower of snapshots. The snapshots contain a change as soon as it is made.
func Of(f *store.Follower) All {
	b := f.Backend()
	return All{
		f, clientcfg.NewRegistrations(f), clientcfg.NewAuditTrail(f), keys.NewRepository(f),
		accounts.NewUsers(f, b), grants.NewRepository(b),
	}
}

// Store is a backend with its repositories.
type Store struct {
	Backend
	All
}
