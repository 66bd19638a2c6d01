package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"oauth-server/internal/config"
	"oauth-server/internal/store"
	"oauth-server/internal/store/embedded"
	"oauth-server/internal/store/mongo"
	"oauth-server/migrations"
)

// Store is what [OpenStore] opens.
type Store = store.Store

// OpenStore opens the configured backend. A file that another process holds,
// a database that does not answer and one whose layout is not that of this
// release are errors within three seconds, which say what to do.
func OpenStore(ctx context.Context, cfg config.Store) (Store, error) {
	if cfg.MongoDB == nil {
		return embedded.Open(cfg.Embedded.Path, embedded.Options{})
	}
	db, err := openMongoDB(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := checkMigrated(ctx, db, cfg.MongoDB); err != nil {
		return nil, errors.Join(err, db.Close()) //nolint:contextcheck // closing is bounded by itself
	}
	return db, nil
}

func openMongoDB(ctx context.Context, cfg config.Store) (*mongo.Store, error) {
	return mongo.Open(ctx, mongo.Options{URI: cfg.MongoDB.URI, Database: cfg.MongoDB.Database})
}

func checkMigrated(ctx context.Context, db *mongo.Store, cfg *config.MongoDB) error {
	pending, err := db.PendingMigrations(ctx)
	if err != nil || len(pending) == 0 {
		return err
	}
	return &UnmigratedError{Pending: pending, URI: config.RedactURI(cfg.URI), Database: cfg.Database}
}

// UnmigratedError is a database whose layout is not that of this release.
type UnmigratedError struct {
	Pending  []migrations.Migration
	URI      string // without the password
	Database string
}

// Error implements error and names the command to run.
func (e *UnmigratedError) Error() string {
	names := make([]string, len(e.Pending))
	for i, m := range e.Pending {
		names[i] = m.String()
	}
	return fmt.Sprintf("the database %q is not migrated, it lacks %s: run oauth-server migrate up --mongodb-uri '%s' --mongodb-database %s, or serve with --migrate",
		e.Database, strings.Join(names, ", "), e.URI, e.Database)
}

// ErrNoMigrations is returned for a store that has none.
var ErrNoMigrations = errors.New("only MongoDB is migrated, and the store is an embedded file: give --mongodb-uri")

// Migrator is a store whose layout is brought up to date by an operator.
type Migrator interface {
	// Migrate applies what is missing.
	Migrate(ctx context.Context) (migrations.Report, error)
	// Migrations returns every migration with its state.
	Migrations(ctx context.Context) ([]migrations.State, error)
	// Verify checks that the server does what exact counts rest on.
	Verify(ctx context.Context, o VerifyOptions) (Verification, error)
	// Close lets go of the database.
	Close() error
}

// OpenMigrator opens the configured store to migrate it. Errors:
// [ErrNoMigrations], and those of opening it.
func OpenMigrator(ctx context.Context, cfg config.Store) (Migrator, error) {
	if cfg.MongoDB == nil {
		return nil, ErrNoMigrations
	}
	return openMongoDB(ctx, cfg)
}

// migrate brings the database up to date, before it is opened to serve.
func (s *Server) migrate(ctx context.Context) error {
	if !s.cfg.Migrate || s.cfg.Store.MongoDB == nil {
		return nil
	}
	db, err := openMongoDB(ctx, s.cfg.Store)
	if err != nil {
		return err
	}
	report, err := db.Migrate(ctx)
	for _, m := range report.Applied {
		s.log.InfoContext(ctx, "migrated the database", "migration", m.String())
	}
	for _, lack := range report.Lacking {
		s.log.WarnContext(ctx, "the database server lacks something", "what", lack)
	}
	return errors.Join(err, db.Close()) //nolint:contextcheck // closing is bounded by itself
}
