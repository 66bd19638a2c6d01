package mongo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
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
	exchange.Store
} = (*Store)(nil)

// Errors of [Open]. All come within [openTimeout].
var (
	// ErrURI: the connection string is not valid.
	ErrURI = errors.New("the MongoDB URI is not valid")
	// ErrAuth: the server refuses the user, the password or the mechanism.
	ErrAuth = errors.New("MongoDB rejects the user name or password")
	// ErrUnreachable: no server answers, or none of them is a primary.
	ErrUnreachable = errors.New("no MongoDB server answers")
	// ErrReplicaSet: servers answer, and none is in the replica set of the URI.
	ErrReplicaSet = errors.New("no member of the replica set in the MongoDB URI was found")
)

// Timeouts. The driver's default for server selection is 30 s. A request would hang for that time
// while there is no primary.
const (
	selectionTimeout = 2 * time.Second
	openTimeout      = 2500 * time.Millisecond
	operationTimeout = 5 * time.Second // includes all retries of the driver
)

// Options name the server and the database.
type Options struct {
	URI      string // mongodb:// or mongodb+srv://; may hold a password
	Database string // such as "oauth"
}

// Open connects and checks that the server answers and accepts the credentials. It distinguishes
// [ErrURI], [ErrAuth], [ErrUnreachable] and [ErrReplicaSet].
func Open(ctx context.Context, o Options) (*Store, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	settings, err := parseURI(ctx, o.URI)
	if err != nil {
		return nil, fmt.Errorf("mongo: open: %w", err)
	}
	client, err := mongo.Connect(settings)
	if err != nil { // Connect refuses only options, and they come from the URI
		return nil, fmt.Errorf("mongo: open: %w%s", ErrURI, detail(o.URI, err))
	}
	if err = client.Ping(ctx, readpref.Primary()); err != nil {
		go func() { // it waits for connections that are being opened, regardless of its context
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
			defer cancel()
			_ = client.Disconnect(ctx)
		}()
		return nil, fmt.Errorf("mongo: open %s: %w", strings.Join(settings.Hosts, ","), classify(err))
	}
	s := newStore(client, o.Database)
	if n := settings.MaxPoolSize; n != nil && *n > 0 && *n <= math.MaxInt32 {
		s.connections = int(*n)
	}
	return s, nil
}

func newStore(client *mongo.Client, database string) *Store {
	db := client.Database(database)
	return &Store{
		client: client, db: db, timeout: operationTimeout,
		connections: 100, // the driver's default
		counters:    db.Collection("ratelimits"),
		trail:       db.Collection("trail"),
	}
}

// Connections returns how many connections the driver opens at most. This is also how many calls
// can use the database at once. 0 in the URI means no maximum and counts as the default.
func (s *Store) Connections() int { return s.connections }

// parseURI parses the URI. For mongodb+srv:// the driver queries the DNS, which no context can
// cancel. When ctx ends, parseURI returns without waiting for the query.
func parseURI(ctx context.Context, uri string) (*options.ClientOptions, error) {
	parsed := make(chan *options.ClientOptions, 1)
	go func() { parsed <- clientOptions(uri) }()
	select {
	case settings := <-parsed:
		err := settings.Validate()
		var lookup *net.DNSError
		switch {
		case errors.As(err, &lookup):
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, lookup)
		case err != nil:
			return nil, fmt.Errorf("%w%s", ErrURI, detail(uri, err))
		}
		return settings, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: DNS timeout", ErrUnreachable)
	}
}

func clientOptions(uri string) *options.ClientOptions {
	return options.Client().
		SetAppName("oauth-server").
		ApplyURI(uri).
		SetServerSelectionTimeout(selectionTimeout).
		SetConnectTimeout(selectionTimeout).
		SetReadPreference(readpref.Primary()).
		SetReadConcern(readconcern.Majority()).
		SetWriteConcern(writeconcern.Majority())
}

// detail returns the fault of a URI without repeating a secret. The driver parses the URI again,
// without user name and password. If it then finds no fault, the fault is in user name or password.
func detail(uri string, err error) string {
	const encode = ": percent-encode special characters in the user name and password"
	lower, at := strings.ToLower(uri), strings.LastIndex(uri, "@")
	switch {
	case strings.Contains(lower, "password="), strings.Contains(lower, "properties="):
		return ": check its options"
	case at < 0:
		return ": " + err.Error()
	case strings.HasPrefix(uri, "mongodb+srv://"): // parsing it would query the DNS once more
		return encode
	case !strings.HasPrefix(uri, "mongodb://"):
		return ": it must begin with mongodb:// or mongodb+srv://"
	}
	if err := options.Client().ApplyURI("mongodb://" + uri[at+1:]).Validate(); err != nil {
		return ": " + err.Error()
	}
	return encode
}

// authenticationFailed and unauthorized are server error codes.
const (
	unauthorized         = 13
	authenticationFailed = 18
)

// classify wraps the error of the first ping in one of the errors of [Open].
func classify(err error) error {
	var command driver.Error
	var handshake *auth.Error
	var selection topology.ServerSelectionError
	switch {
	case errors.As(err, &handshake),
		errors.As(err, &command) && (command.Code == authenticationFailed || command.Code == unauthorized):
		return fmt.Errorf("%w: %w", ErrAuth, err)
	case errors.As(err, &selection) && selection.Desc.SetName != "" && len(selection.Desc.Servers) == 0:
		// The driver drops servers of other replica sets.
		return fmt.Errorf("%w: %s: %w", ErrReplicaSet, selection.Desc.SetName, err)
	default:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
}

// Close waits for the operations under way, then disconnects.
func (s *Store) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout) //nolint:forbidigo // closing is bounded by itself
	defer cancel()
	err := s.client.Disconnect(ctx)
	if err != nil && !errors.Is(err, mongo.ErrClientDisconnected) {
		return fmt.Errorf("mongo: close: %w", err)
	}
	return nil
}

// Migrate brings the database to the layout of this release.
func (s *Store) Migrate(ctx context.Context) (migrations.Report, error) {
	return migrations.Up(ctx, s.db)
}

// Migrations returns every migration with its state.
func (s *Store) Migrations(ctx context.Context) ([]migrations.State, error) {
	return migrations.Status(ctx, s.db)
}

// PendingMigrations returns the migrations that [Store.Migrate] would apply.
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

// run runs one operation. Its commands and its error carry the operation's name. A panic becomes an
// error: the driver does not check the indexes in a reply, and no caller could recover from a panic
// in a goroutine of this package.
func run(ctx context.Context, operation string, fn func(ctx context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
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
