// Package repositories has what every domain stores, on one backend, as one value: for commands and the
// admin API, which use most of it.
package repositories

import (
	"context"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/store"
	"oauth-server/internal/syncer"
)

// Backend is a backend with the counters. The file and MongoDB implement it.
type Backend interface {
	store.Backend
	syncer.Store
	// CountersOf returns at most limit counters of a client, in any order: all of them, or those of one
	// username if it is not nil.
	CountersOf(ctx context.Context, clientID string, username *string, limit int) ([]syncer.Record, error)
	// EraseCounters removes the counters of a client: all of them, or those of one username if it is
	// not nil.
	EraseCounters(ctx context.Context, clientID string, username *string) error
}

// All are the repositories of all domains.
type All struct {
	Follower *store.Follower
	*clientcfg.Registrations
	*clientcfg.AuditTrail
	*keys.Repository
	*grants.UserRepository
	*grantsRepository
}

type grantsRepository = grants.Repository // another name: keys has a Repository as well

// On returns the repositories on a backend.
func On(ctx context.Context, b store.Backend) (All, error) {
	f, err := store.NewFollower(ctx, b)
	if err != nil {
		return All{}, err
	}
	return Of(f), nil
}

// Of is [On] with the follower of snapshots, which contain a change when it is made.
func Of(f *store.Follower) All {
	b := f.Backend()
	return All{
		f, clientcfg.NewRegistrations(f), clientcfg.NewAuditTrail(f), keys.NewRepository(f),
		grants.NewUserRepository(f, b), grants.NewRepository(b),
	}
}

// Store is a backend with its repositories.
type Store struct {
	Backend
	All
}
