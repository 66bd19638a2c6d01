package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"oauth-server/internal/app/repositories"
	"oauth-server/internal/config"
	"oauth-server/internal/store/bolt"
	"oauth-server/internal/store/mongo"
	"oauth-server/migrations"
)

// Store is the type that [OpenStore] returns.
type Store = repositories.Store

// ErrStoreHeld is returned by [OpenStore] for a data file that another process has open.
var ErrStoreHeld = bolt.ErrLocked

// OpenStore opens the configured store. Within three seconds, it returns an error with advice if
// another process holds the file, if the database does not answer, or if the layout of the database
// does not match this release (*[UnmigratedError]).
func OpenStore(ctx context.Context, cfg config.Store) (Store, error) {
	return withRepositories(ctx, cfg, bolt.Options{})
}

// OpenExisting is like [OpenStore], but does not create a data file. A missing or empty file is an
// error.
func OpenExisting(ctx context.Context, cfg config.Store) (Store, error) {
	return withRepositories(ctx, cfg, bolt.Options{Existing: true})
}

func withRepositories(ctx context.Context, cfg config.Store, file bolt.Options) (Store, error) {
	b, err := openBackend(ctx, cfg, file)
	if err != nil {
		return Store{}, err
	}
	r, err := repositories.On(ctx, b)
	if err != nil {
		return Store{}, errors.Join(err, b.Close())
	}
	return Store{Backend: b, All: r}, nil
}

// openBackend opens the configured store without its repositories.
func openBackend(ctx context.Context, cfg config.Store, file bolt.Options) (repositories.Backend, error) {
	if cfg.MongoDB == nil {
		opened, err := bolt.Open(cfg.Embedded.Path, file)
		if err != nil {
			return nil, err
		}
		return opened, nil
	}
	db, err := openMongoDB(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := checkMigrated(ctx, db, cfg.MongoDB); err != nil {
		return nil, errors.Join(err, db.Close())
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

// UnmigratedError is returned for a database with a layout that does not match this release.
type UnmigratedError struct {
	Pending  []migrations.Migration
	URI      string // without the password
	Database string
}

// Error implements error. It names the command to run.
func (e *UnmigratedError) Error() string {
	names := make([]string, len(e.Pending))
	for i, m := range e.Pending {
		names[i] = m.String()
	}
	return fmt.Sprintf("database %q lacks migrations %s: run oauth-server migrate up --mongodb-uri '%s' --mongodb-database %s, or serve with --migrate",
		e.Database, strings.Join(names, ", "), e.URI, e.Database)
}

// ErrNoMigrations is returned for a store without migrations.
var ErrNoMigrations = errors.New("the embedded store needs no migrations: give --mongodb-uri")

// Migrator is a store with a layout that an operator migrates.
type Migrator = *mongo.Store

// OpenMigrator opens the configured store to migrate it. It returns [ErrNoMigrations], or an error
// of opening the store.
func OpenMigrator(ctx context.Context, cfg config.Store) (Migrator, error) {
	if cfg.MongoDB == nil {
		return nil, ErrNoMigrations
	}
	return openMongoDB(ctx, cfg)
}

// migrateAndOpen migrates a database, if configured, and opens the store.
func migrateAndOpen(ctx context.Context, cfg *config.Config, log *slog.Logger) (repositories.Backend, error) {
	if cfg.Migrate && cfg.Store.MongoDB != nil {
		if err := migrate(ctx, cfg.Store, log); err != nil {
			return nil, err
		}
	}
	return openBackend(ctx, cfg.Store, bolt.Options{})
}

func migrate(ctx context.Context, cfg config.Store, log *slog.Logger) error {
	db, err := openMongoDB(ctx, cfg)
	if err != nil {
		return err
	}
	report, err := db.Migrate(ctx)
	for _, m := range report.Applied {
		log.InfoContext(ctx, "database migrated", slog.String("migration", m.String()))
	}
	for _, lack := range report.Lacking {
		log.WarnContext(ctx, "database server lacks a feature; migrated without it", slog.String("what", lack))
	}
	return errors.Join(err, db.Close())
}

// VerifyOptions are the options of [Migrator.Verify].
type VerifyOptions = mongo.VerifyOptions

// Verification is the result of [Migrator.Verify].
type Verification = mongo.Verification

// verifyStore checks once, in the background, the properties of the database that exact counts
// depend on. It never prevents the server from starting. For a store that needs no verification, it
// does nothing and returns nil.
func (f *foundation) verifyStore(ctx context.Context) (stop func(context.Context) error) {
	store, ok := f.backend.(*mongo.Store)
	if !ok {
		return nil
	}
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(done)
		_ = f.loops.Guard(ctx, "verification", func(ctx context.Context) error {
			found, err := store.VerifyCounters(ctx)
			if ctx.Err() == nil {
				f.reportVerification(ctx, found, err)
			}
			return nil
		})
	}()
	return func(context.Context) error {
		cancel()
		<-done
		return nil
	}
}

// reportVerification logs failed checks, also if the checks ended early or left their documents
// behind.
func (f *foundation) reportVerification(ctx context.Context, found Verification, err error) {
	var failed []string
	for _, c := range found.Inexact() {
		if c.Status != mongo.CheckUnchecked {
			failed = append(failed, c.Name+": "+c.Detail)
		}
	}
	var attrs []slog.Attr
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	switch {
	case len(failed) > 0:
		attrs = append(attrs, slog.Any("failed", failed))
		f.log.LogAttrs(ctx, slog.LevelWarn, "database verification failed, counts may not be exact; see oauth-server migrate verify", attrs...)
	case err != nil:
		f.log.LogAttrs(ctx, slog.LevelInfo, "database verification incomplete; see oauth-server migrate verify", attrs...)
	}
}
