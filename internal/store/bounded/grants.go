package bounded

import (
	"context"

	"oauth-server/internal/grants"
)

// User implements grants.Users.
func (s *Store) User(ctx context.Context, name string) (grants.User, error) {
	return read(ctx, s, func() (grants.User, error) { return s.backend.User(ctx, name) })
}

// ChangeUser implements grants.Users.
func (s *Store) ChangeUser(ctx context.Context, name string, change grants.UserChange) error {
	return s.do(ctx, func() error { return s.backend.ChangeUser(ctx, name, change) })
}
