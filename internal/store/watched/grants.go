package watched

import (
	"context"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// CreateCode implements grants.Codes.
func (s *Store) CreateCode(ctx context.Context, c grants.Code) (err error) {
	ctx, end := s.observer.Begin(ctx, "create_code")
	defer func() { end(Failed(err)) }()
	return s.backend.CreateCode(ctx, c)
}

// Code implements grants.Codes.
func (s *Store) Code(ctx context.Context, d secret.Digest) (_ grants.Code, err error) {
	ctx, end := s.observer.Begin(ctx, "read_code")
	defer func() { end(Failed(err)) }()
	return s.backend.Code(ctx, d)
}

// RedeemCode implements grants.Codes.
func (s *Store) RedeemCode(ctx context.Context, d secret.Digest, first *grants.Family) (err error) {
	ctx, end := s.observer.Begin(ctx, "redeem_code")
	defer func() { end(Failed(err)) }()
	return s.backend.RedeemCode(ctx, d, first)
}

// CreateFamily implements grants.Families.
func (s *Store) CreateFamily(ctx context.Context, f grants.Family) (err error) {
	ctx, end := s.observer.Begin(ctx, "create_refresh_token")
	defer func() { end(Failed(err)) }()
	return s.backend.CreateFamily(ctx, f)
}

// Family implements grants.Families.
func (s *Store) Family(ctx context.Context, d secret.Digest) (_ grants.Family, err error) {
	ctx, end := s.observer.Begin(ctx, "read_refresh_token")
	defer func() { end(Failed(err)) }()
	return s.backend.Family(ctx, d)
}

// RotateFamily implements grants.Families.
func (s *Store) RotateFamily(ctx context.Context, next grants.Family) (err error) {
	ctx, end := s.observer.Begin(ctx, "rotate_refresh_token")
	defer func() { end(Failed(err)) }()
	return s.backend.RotateFamily(ctx, next)
}

// Revoke implements grants.Revocations.
func (s *Store) Revoke(ctx context.Context, name string, until time.Time) (err error) {
	ctx, end := s.observer.Begin(ctx, "revoke")
	defer func() { end(Failed(err)) }()
	return s.backend.Revoke(ctx, name, until)
}

// RecordOnce implements grants.Revocations.
func (s *Store) RecordOnce(ctx context.Context, name string, until time.Time) (err error) {
	ctx, end := s.observer.Begin(ctx, "record_once")
	defer func() { end(Failed(err)) }()
	return s.backend.RecordOnce(ctx, name, until)
}

// Revoked implements grants.Revocations.
func (s *Store) Revoked(ctx context.Context, names ...string) (_ bool, err error) {
	ctx, end := s.observer.Begin(ctx, "read_revocations")
	defer func() { end(Failed(err)) }()
	return s.backend.Revoked(ctx, names...)
}

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

// CreateSession implements grants.Sessions.
func (s *Store) CreateSession(ctx context.Context, v grants.Session, most int) (err error) {
	ctx, end := s.observer.Begin(ctx, "create_session")
	defer func() { end(Failed(err)) }()
	return s.backend.CreateSession(ctx, v, most)
}

// Session implements grants.Sessions.
func (s *Store) Session(ctx context.Context, d secret.Digest) (_ grants.Session, err error) {
	ctx, end := s.observer.Begin(ctx, "read_session")
	defer func() { end(Failed(err)) }()
	return s.backend.Session(ctx, d)
}

// DeleteSession implements grants.Sessions.
func (s *Store) DeleteSession(ctx context.Context, d secret.Digest) (err error) {
	ctx, end := s.observer.Begin(ctx, "delete_session")
	defer func() { end(Failed(err)) }()
	return s.backend.DeleteSession(ctx, d)
}

// Agreement implements grants.Agreements.
func (s *Store) Agreement(ctx context.Context, username, clientID string) (_ grants.Agreement, err error) {
	ctx, end := s.observer.Begin(ctx, "read_agreement")
	defer func() { end(Failed(err)) }()
	return s.backend.Agreement(ctx, username, clientID)
}

// AgreementsOf implements grants.Agreements.
func (s *Store) AgreementsOf(ctx context.Context, username string) (_ []grants.Agreement, err error) {
	ctx, end := s.observer.Begin(ctx, "read_agreements")
	defer func() { end(Failed(err)) }()
	return s.backend.AgreementsOf(ctx, username)
}

// PutAgreement implements grants.Agreements.
func (s *Store) PutAgreement(ctx context.Context, a grants.Agreement) (err error) {
	ctx, end := s.observer.Begin(ctx, "put_agreement")
	defer func() { end(Failed(err)) }()
	return s.backend.PutAgreement(ctx, a)
}

// DeleteAgreement implements grants.Agreements.
func (s *Store) DeleteAgreement(ctx context.Context, a *grants.Agreement) (err error) {
	ctx, end := s.observer.Begin(ctx, "delete_agreement")
	defer func() { end(Failed(err)) }()
	return s.backend.DeleteAgreement(ctx, a)
}
