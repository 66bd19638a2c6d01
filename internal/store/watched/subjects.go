package watched

import (
	"context"

	"oauth-server/internal/gateway/sharing"
)

// Subjects is a watched [sharing.Store].
type Subjects struct {
	backend  sharing.Store
	observer Observer
}

// NewSubjects returns the store, watched.
func NewSubjects(b sharing.Store, o Observer) *Subjects { return &Subjects{backend: b, observer: o} }

// Subject implements [sharing.Store].
func (s *Subjects) Subject(ctx context.Context, k sharing.Key) (sharing.Entry, error) {
	ctx, end := s.observer.Begin(ctx, "read_subject")
	e, err := s.backend.Subject(ctx, k)
	end(Failed(err))
	return e, err
}

// PutSubjects implements [sharing.Store].
func (s *Subjects) PutSubjects(ctx context.Context, entries []sharing.Entry) error {
	ctx, end := s.observer.Begin(ctx, "store_subjects")
	err := s.backend.PutSubjects(ctx, entries)
	end(Failed(err))
	return err
}
