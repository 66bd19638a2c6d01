package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// ErrChanged means that an applied migration differs from the one in this release, so the layout of
// the database is unknown.
var ErrChanged = errors.New("migrations: an applied migration differs from the one in this release")

// State is one migration and whether the database has it.
type State struct {
	Migration
	AppliedAt time.Time // zero while it is pending
}

// Status returns every migration of this release with its state. It does not list migrations of a
// newer release: migrations only ever add, so this release works with them.
func Status(ctx context.Context, db *mongo.Database) ([]State, error) {
	applied, err := recorded(ctx, db)
	if err != nil {
		return nil, err
	}
	var states []State
	for _, m := range All() {
		e := applied[m.Number]
		if e.Checksum != "" && e.Checksum != m.Checksum() {
			return nil, fmt.Errorf("%w: %s, applied as %04d_%s on %s", ErrChanged, m, e.Number, e.Name, e.AppliedAt.Format(time.RFC3339))
		}
		states = append(states, State{Migration: m, AppliedAt: e.AppliedAt})
	}
	return states, nil
}

// Pending returns the migrations that [Up] would apply now, in their order. It changes nothing.
func Pending(ctx context.Context, db *mongo.Database) ([]Migration, error) {
	states, err := Status(ctx, db)
	if err != nil {
		return nil, err
	}
	var pending []Migration
	for _, s := range states {
		if s.AppliedAt.IsZero() {
			pending = append(pending, s.Migration)
		}
	}
	return pending, nil
}
