package mongo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"oauth-server/internal/store"
	"oauth-server/migrations"
)

// Store is the MongoDB backend. It is safe for concurrent use.
type Store struct {
	client  *mongo.Client
	db      *mongo.Database
	timeout time.Duration

	clients, users, signingKeys   collection
	grants, sessions, revocations collection
	counters, instances           collection
	policies, audit               collection
}

var _ store.Store = (*Store)(nil)

// ErrClosed is returned by a store that was closed.
var ErrClosed = errors.New("the store is closed")

func newStore(client *mongo.Client, o Options) *Store {
	db := client.Database(o.Database)
	named := func(name string) collection { return collection{db.Collection(name)} }
	return &Store{
		client: client, db: db, timeout: o.Timeout,
		clients: named("clients"), users: named("users"), signingKeys: named("keys"),
		grants: named("grants"), sessions: named("sessions"), revocations: named("revocations"),
		counters: named("ratelimits"), instances: named("instances"),
		policies: named("policies"), audit: named("audit"),
	}
}

// Close lets what is under way finish, then disconnects.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	err := s.client.Disconnect(ctx)
	if err != nil && !errors.Is(err, mongo.ErrClientDisconnected) {
		return fmt.Errorf("mongo: close: %w", err)
	}
	return nil
}

// Ping asks whether the primary answers.
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

// do runs one operation within the time that it may take.
func (s *Store) do(ctx context.Context, operation string, fn func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(withOperation(ctx, operation), s.timeout)
	defer cancel()
	return wrap(operation, fn(ctx))
}

// wrap names the operation that failed.
func wrap(operation string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mongo.ErrClientDisconnected):
		return fmt.Errorf("mongo: %s: %w", operation, ErrClosed)
	}
	return fmt.Errorf("mongo: %s: %w", operation, err)
}

// insert adds a document; exists is the answer if its _id or another unique
// field is taken.
func (s *Store) insert(ctx context.Context, operation string, c collection, doc any, exists error) error {
	return s.do(ctx, operation, func(ctx context.Context) error {
		_, err := c.InsertOne(ctx, doc)
		if mongo.IsDuplicateKeyError(err) {
			return exists
		}
		return err
	})
}

// findAll reads every match.
func findAll[T any](ctx context.Context, c collection, filter bson.D, opts ...findOption) ([]T, error) {
	cursor, err := c.Find(ctx, filter, opts...)
	if err != nil {
		return nil, err
	}
	var list []T
	err = cursor.All(ctx, &list)
	return list, err
}

// byID is the filter for one document.
func byID(id any) bson.D { return bson.D{{Key: "_id", Value: id}} }
