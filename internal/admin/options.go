package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oauth-server/internal/activity"
	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/keys"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// Tokens verifies bearer tokens. grants.Service is one.
type Tokens interface {
	// Bearer returns the claims of a token that is good now. An error that
	// wraps [grants.ErrBearer] says that it is not; any other, that nobody can tell.
	Bearer(ctx context.Context, token string) (keys.Claims, error)
}

// Clients looks registered clients up. [clientcfg.Source] is one.
type Clients interface {
	// Directory returns the current snapshot.
	Directory() *clientcfg.Directory
	// Refresh makes it the newest.
	Refresh(ctx context.Context) error
}

// Counters shows what is counted in this process. [ratelimit.Counters] is one.
type Counters interface {
	// ClientUsage returns the most used counters of a client and its users.
	ClientUsage(now time.Time, clientID string, limit int) []ratelimit.Usage
	// Usage returns the counters of one key.
	Usage(now time.Time, k ratelimit.Key) []ratelimit.Usage
	// Top returns the most used counters of all.
	Top(now time.Time, limit int) []ratelimit.Usage
}

// StoredCounters shows what all processes together have counted.
type StoredCounters interface {
	// CountersOf returns at most limit counters of a client, in any order: of
	// all its users, or of one username if it is not nil.
	CountersOf(ctx context.Context, clientID string, username *string, limit int) ([]syncer.Record, error)
}

// Reports reads the heartbeats of all instances.
type Reports interface {
	// Reports returns the records of all instances that have beaten within ttl by the
	// clock of the store, with their reports, ordered by ID.
	Reports(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error)
}

// Options make a [Server]. All are required but those that say what holds
// without them.
type Options struct {
	Issuer   string        // named to callers without a token, who have to get one there
	Version  string        // of the program
	Instance func() string // ID of this process; it changes if a copy of the process runs under it

	Tokens   Tokens
	Clients  Clients
	Policies *clientcfg.PolicySource
	Audit    clientcfg.AuditLog
	Reports  Reports
	Counters Counters
	Activity *activity.Recorder

	// Stored are the shared counters, those included that only other
	// processes serve. Nil: there are none.
	Stored StoredCounters
	// Sync tells how this process shares its counts. Nil: it does not.
	Sync func() adminapi.SyncState

	// AuditKept is how long the trail is kept: 400 days.
	AuditKept time.Duration
	Now       func() time.Time // time.Now
	// Clock is the time that the counters go by, Now if it is nil; see package clock.
	Clock  func() time.Time
	Logger *slog.Logger // discards
}

// DefaultAuditKept is 400 days.
const DefaultAuditKept = 400 * 24 * time.Hour

func (o *Options) setDefaults() {
	if o.AuditKept <= 0 {
		o.AuditKept = DefaultAuditKept
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = o.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// validate reports everything that is missing, joined.
func (o *Options) validate() error {
	var errs []error
	for _, need := range []struct {
		name    string
		missing bool
	}{
		{"Issuer", o.Issuer == ""},
		{"Instance", o.Instance == nil},
		{"Tokens", o.Tokens == nil},
		{"Clients", o.Clients == nil},
		{"Policies", o.Policies == nil},
		{"Audit", o.Audit == nil},
		{"Reports", o.Reports == nil},
		{"Counters", o.Counters == nil},
		{"Activity", o.Activity == nil},
	} {
		if need.missing {
			errs = append(errs, fmt.Errorf("admin: Options.%s is missing", need.name))
		}
	}
	return errors.Join(errs...)
}
