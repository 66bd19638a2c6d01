package watched

import (
	"context"

	"oauth-server/internal/grants"
)

// User implements grants.Users.
func (s *Store) User(ctx context.Context, name string) (_ grants.User, err error) {
	ctx, end := s.observer.Begin(ctx, "read_user")
	defer func() { end(Failed(err)) }()
	return s.backend.User(ctx, name)
}

// ChangeUser implements grants.Users.
func (s *Store) ChangeUser(ctx context.Context, name string, change grants.UserChange) (err error) {
	ctx, end := s.observer.Begin(ctx, "change_user")
	defer func() { end(Failed(err)) }()
	return s.backend.ChangeUser(ctx, name, change)
}
