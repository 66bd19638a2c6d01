package legacy

import (
	"context"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/store"
)

// Repositories are what has moved from [Store] to [store.Backend], as one value.
type Repositories struct {
	Follower *store.Follower
	*clientcfg.Registrations
	*clientcfg.AuditTrail
	*keys.Repository
	*grants.UserRepository
	*grantsRepository
}

type grantsRepository = grants.Repository

// RepositoriesOn returns the repositories on a backend.
func RepositoriesOn(ctx context.Context, b store.Backend) (Repositories, error) {
	f, err := store.NewFollower(ctx, b)
	if err != nil {
		return Repositories{}, err
	}
	return RepositoriesOf(f), nil
}

// RepositoriesOf is [RepositoriesOn] with the follower of snapshots, which contain a change when it is made.
func RepositoriesOf(f *store.Follower) Repositories {
	b := f.Backend()
	return Repositories{
		f, clientcfg.NewRegistrations(f), clientcfg.NewAuditTrail(f), keys.NewRepository(f),
		grants.NewUserRepository(f, b), grants.NewRepository(b),
	}
}

// Whole is a [Store] with its repositories.
type Whole struct {
	Store
	Repositories
}
