package mongo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// Errors of [Open]. All come within [openTimeout].
var (
	// ErrURI: the connection string is not one.
	ErrURI = errors.New("the MongoDB URI is not valid")
	// ErrAuth: the server refuses the user, the password or the mechanism.
	ErrAuth = errors.New("MongoDB refuses the user name or password")
	// ErrUnreachable: nobody answers, or no primary is there.
	ErrUnreachable = errors.New("no MongoDB server answers")
	// ErrReplicaSet: servers answer, and are not in the set of the URI.
	ErrReplicaSet = errors.New("no member of the replica set in the MongoDB URI was found")
)

// Timeouts. The driver's own server selection takes 30 s, in which a request
// would hang while there is no primary.
const (
	selectionTimeout = 2 * time.Second
	openTimeout      = 2500 * time.Millisecond
	operationTimeout = 5 * time.Second // all of the driver's retries included
)

// Options say where the data is.
type Options struct {
	URI      string // mongodb:// or mongodb+srv://; may hold a password
	Database string // such as "oauth"
}

// Open connects and checks that the server answers and takes the credentials.
// It distinguishes [ErrURI], [ErrAuth], [ErrUnreachable] and [ErrReplicaSet].
func Open(ctx context.Context, o Options) (*Store, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	settings, err := parseURI(ctx, o.URI)
	if err != nil {
		return nil, fmt.Errorf("mongo: open: %w", err)
	}
	client, err := mongo.Connect(settings)
	if err != nil { // what Connect refuses is what the URI asked for
		return nil, fmt.Errorf("mongo: open: %w%s", ErrURI, detail(o.URI, err))
	}
	if err = client.Ping(ctx, readpref.Primary()); err != nil {
		abandon(context.WithoutCancel(ctx), client)
		return nil, fmt.Errorf("mongo: open %s: %w", hosts(settings), classify(err))
	}
	return newStore(client, o.Database), nil
}

// abandon closes a client that never worked. Nobody waits for it: whatever its
// context says, closing lasts as long as the connections that are being tried.
// That it fails says nothing that the failed ping has not said.
func abandon(ctx context.Context, client *mongo.Client) {
	go func() {
		ctx, cancel := context.WithTimeout(ctx, openTimeout)
		defer cancel()
		_ = client.Disconnect(ctx)
	}()
}

// parseURI reads the URI; mongodb+srv:// asks the DNS, which does not know of
// contexts.
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
		return nil, fmt.Errorf("%w: the DNS does not answer in time", ErrUnreachable)
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

// detail is what the driver has to say about a URI, without any secret that it
// might repeat: it is asked about the URI without user name and password. If
// that is sound, then it is them that are not.
func detail(uri string, err error) string {
	lower := strings.ToLower(uri)
	if strings.Contains(lower, "password=") || strings.Contains(lower, "properties=") {
		return ": check its options"
	}
	scheme, rest, ok := strings.Cut(uri, "://")
	at := strings.LastIndex(rest, "@")
	if !ok || at < 0 {
		return ": " + err.Error()
	}
	const encode = ": percent-encode special characters in the user name and password"
	switch scheme {
	case "mongodb":
	case "mongodb+srv": // parsing it would ask the DNS once more
		return encode
	default:
		return ": it must begin with mongodb:// or mongodb+srv://"
	}
	if err := options.Client().ApplyURI(scheme + "://" + rest[at+1:]).Validate(); err != nil {
		return ": " + err.Error()
	}
	return encode
}

func hosts(settings *options.ClientOptions) string { return strings.Join(settings.Hosts, ",") }

// authenticationFailed and unauthorized are server error codes.
const (
	unauthorized         = 13
	authenticationFailed = 18
)

// classify says what kept the first ping from being answered.
func classify(err error) error {
	var command driver.Error
	var handshake *auth.Error
	var selection topology.ServerSelectionError
	switch {
	case errors.As(err, &handshake),
		errors.As(err, &command) && (command.Code == authenticationFailed || command.Code == unauthorized):
		return fmt.Errorf("%w: %w", ErrAuth, err)
	case errors.As(err, &selection) && selection.Desc.SetName != "" && len(selection.Desc.Servers) == 0: // the driver drops strangers
		return fmt.Errorf("%w: %s: %w", ErrReplicaSet, selection.Desc.SetName, err)
	default:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
}
