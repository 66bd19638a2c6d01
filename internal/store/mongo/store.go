package mongo

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"oauth-server/internal/store"
	"oauth-server/internal/syncer"
	"oauth-server/migrations"
)

// Store is the MongoDB backend. It is safe for concurrent use.
type Store struct {
	client  *mongo.Client
	db      *mongo.Database
	timeout time.Duration // of one operation

	connections int // at most

	counters *mongo.Collection
	trail    *mongo.Collection
}

var _ interface {
	store.Backend
	syncer.Store
} = (*Store)(nil)

// ErrClosed is returned by a store that was closed.
var ErrClosed = errors.New("the store is closed")

func newStore(client *mongo.Client, database string) *Store {
	db := client.Database(database)
	return &Store{
		client: client, db: db, timeout: operationTimeout, connections: driverConnections,
		counters: db.Collection("ratelimits"),
		trail:    db.Collection("trail"),
	}
}

// Close waits for the operations under way, then disconnects.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	err := s.client.Disconnect(ctx)
	if err != nil && !errors.Is(err, mongo.ErrClientDisconnected) {
		return fmt.Errorf("mongo: close: %w", err)
	}
	return nil
}

// Ping returns an error unless the primary answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.do(ctx, "ping", func(ctx context.Context) error { return s.client.Ping(ctx, readpref.Primary()) })
}

// Migrate brings the database to the layout of this release.
func (s *Store) Migrate(ctx context.Context) (migrations.Report, error) {
	return migrations.Up(ctx, s.db)
}

// Migrations returns every migration with its state.
func (s *Store) Migrations(ctx context.Context) ([]migrations.State, error) {
	return migrations.Status(ctx, s.db)
}

// PendingMigrations returns what [Store.Migrate] would apply.
func (s *Store) PendingMigrations(ctx context.Context) ([]migrations.Migration, error) {
	return migrations.Pending(ctx, s.db)
}

// do runs one operation within the store's timeout.
func (s *Store) do(ctx context.Context, operation string, fn func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return run(ctx, operation, fn)
}

type operationKey struct{}

// run runs one operation. Its commands and its error carry its name. A panic becomes an error: the
// driver does not check the indexes in a reply, and no caller could recover from a panic in a goroutine
// of this package.
func run(ctx context.Context, operation string, fn func(ctx context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
		if errors.Is(err, mongo.ErrClientDisconnected) {
			err = ErrClosed
		}
		if err != nil {
			err = fmt.Errorf("mongo: %s: %w", operation, err)
		}
	}()
	return fn(context.WithValue(ctx, operationKey{}, operation))
}

// comment returns the comment of every command that reads or writes documents. It names the operation, so that a
// slow query in the server's log can be traced.
func comment(ctx context.Context) string {
	operation, _ := ctx.Value(operationKey{}).(string)
	return "oauth-server: " + operation
}

// byID returns the filter for an _id.
func byID(id any) bson.D { return bson.D{{Key: "_id", Value: id}} }

// field returns a document of one field.
func field(name string, value any) bson.D { return bson.D{{Key: name, Value: value}} }
