package bounded

import (
	"context"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// CreateCode implements grants.Codes.
func (s *Store) CreateCode(ctx context.Context, c grants.Code) error {
	return s.do(ctx, func() error { return s.backend.CreateCode(ctx, c) })
}

// Code implements grants.Codes.
func (s *Store) Code(ctx context.Context, d secret.Digest) (grants.Code, error) {
	return read(ctx, s, func() (grants.Code, error) { return s.backend.Code(ctx, d) })
}

// RedeemCode implements grants.Codes.
func (s *Store) RedeemCode(ctx context.Context, d secret.Digest, first *grants.Family) error {
	return s.do(ctx, func() error { return s.backend.RedeemCode(ctx, d, first) })
}

// CreateFamily implements grants.Families.
func (s *Store) CreateFamily(ctx context.Context, f grants.Family) error {
	return s.do(ctx, func() error { return s.backend.CreateFamily(ctx, f) })
}

// Family implements grants.Families.
func (s *Store) Family(ctx context.Context, d secret.Digest) (grants.Family, error) {
	return read(ctx, s, func() (grants.Family, error) { return s.backend.Family(ctx, d) })
}

// RotateFamily implements grants.Families.
func (s *Store) RotateFamily(ctx context.Context, next grants.Family) error {
	return s.do(ctx, func() error { return s.backend.RotateFamily(ctx, next) })
}

// Revoke implements grants.Revocations.
func (s *Store) Revoke(ctx context.Context, name string, until time.Time) error {
	return s.do(ctx, func() error { return s.backend.Revoke(ctx, name, until) })
}

// RecordOnce implements grants.Revocations.
func (s *Store) RecordOnce(ctx context.Context, name string, until time.Time) error {
	return s.do(ctx, func() error { return s.backend.RecordOnce(ctx, name, until) })
}

// Revoked implements grants.Revocations.
func (s *Store) Revoked(ctx context.Context, names ...string) (bool, error) {
	return read(ctx, s, func() (bool, error) { return s.backend.Revoked(ctx, names...) })
}

// User implements grants.Users.
func (s *Store) User(ctx context.Context, name string) (grants.User, error) {
	return read(ctx, s, func() (grants.User, error) { return s.backend.User(ctx, name) })
}

// ChangeUser implements grants.Users.
func (s *Store) ChangeUser(ctx context.Context, name string, change grants.UserChange) error {
	return s.do(ctx, func() error { return s.backend.ChangeUser(ctx, name, change) })
}

// CreateSession implements grants.Sessions.
func (s *Store) CreateSession(ctx context.Context, v grants.Session, most int) error {
	return s.do(ctx, func() error { return s.backend.CreateSession(ctx, v, most) })
}

// Session implements grants.Sessions.
func (s *Store) Session(ctx context.Context, d secret.Digest) (grants.Session, error) {
	return read(ctx, s, func() (grants.Session, error) { return s.backend.Session(ctx, d) })
}

// DeleteSession implements grants.Sessions.
func (s *Store) DeleteSession(ctx context.Context, d secret.Digest) error {
	return s.do(ctx, func() error { return s.backend.DeleteSession(ctx, d) })
}

// Agreement implements grants.Agreements.
func (s *Store) Agreement(ctx context.Context, username, clientID string) (grants.Agreement, error) {
	return read(ctx, s, func() (grants.Agreement, error) { return s.backend.Agreement(ctx, username, clientID) })
}

// AgreementsOf implements grants.Agreements.
func (s *Store) AgreementsOf(ctx context.Context, username string) ([]grants.Agreement, error) {
	return read(ctx, s, func() ([]grants.Agreement, error) { return s.backend.AgreementsOf(ctx, username) })
}

// PutAgreement implements grants.Agreements.
func (s *Store) PutAgreement(ctx context.Context, a grants.Agreement) error {
	return s.do(ctx, func() error { return s.backend.PutAgreement(ctx, a) })
}

// DeleteAgreement implements grants.Agreements.
func (s *Store) DeleteAgreement(ctx context.Context, a *grants.Agreement) error {
	return s.do(ctx, func() error { return s.backend.DeleteAgreement(ctx, a) })
}
