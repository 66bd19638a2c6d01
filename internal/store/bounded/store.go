package bounded

import (
	"context"
	"errors"

	"oauth-server/internal/admission/lane"
	"oauth-server/internal/grants"
	"oauth-server/internal/store/watched"
)

// Store is a [grants.Users] behind a lane. Every method returns, besides the errors of that, those of [lane.Lane.Enter].
type Store struct {
	backend grants.Users
	lane    *lane.Lane
	gate    Gate
}

// Gate takes requests that are at the store, or wait for it, out of those that are worked on. [admission.Gate] is one.
type Gate interface {
	Pause(ctx context.Context)
	Resume(ctx context.Context)
}

var _ grants.Users = (*Store)(nil)

// New returns the backend behind the lane.
func New(b grants.Users, l *lane.Lane, g Gate) *Store { return &Store{backend: b, lane: l, gate: g} }

func (s *Store) do(ctx context.Context, call func() error) error {
	_, err := read(ctx, s, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

func read[T any](ctx context.Context, s *Store, call func() (T, error)) (result T, err error) {
	s.gate.Pause(ctx)
	defer s.gate.Resume(ctx)
	pass, err := s.lane.Enter(ctx)
	if err != nil {
		return result, err
	}
	measured := false // a call that panics is not
	defer func() { pass.Leave(measured) }()
	result, err = call()
	measured = answered(err)
	return result, err
}

// answered reports whether a call has shown how long the store takes: it has answered, or taken too long. A refused
// connection takes no time and does not show that the store is quick, nor does a caller that has gone.
func answered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || !watched.Failed(err) && !errors.Is(err, context.Canceled)
}
