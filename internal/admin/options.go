package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oauth-server/internal/activity"
	"oauth-server/internal/adminapi"
	"oauth-server/internal/bans"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/registry"
	"oauth-server/internal/syncer"
)

// Tokens verifies bearer tokens. [grants.Service] is one.
type Tokens interface {
	// Bearer returns the claims of a valid token. An error that wraps [grants.ErrBearer]
	// means that it is not valid; any other error, that this could not be found out.
	Bearer(ctx context.Context, token string) (keys.Claims, error)
}

// Users looks users up. [grants.Users] is one.
type Users interface {
	// User returns the user of that name, or an error that wraps [grants.ErrNotFound].
	User(ctx context.Context, name string) (grants.User, error)
}

// Clients looks registered clients up. [clientcfg.Source] is one.
type Clients interface {
	// Directory returns the current snapshot.
	Directory() *clientcfg.Directory
	// Renew reads what has changed in the store, unless the snapshot was the newest at most so long ago.
	Renew(ctx context.Context, atMost time.Duration) error
	// CheckedAt is when the snapshot was last found to be the newest.
	CheckedAt() time.Time
}

// Counters reads the counters of this process. [ratelimit.Counters] is one.
type Counters interface {
	// ClientUsage returns the most used counters of a client and its users.
	ClientUsage(now time.Time, clientID string, limit int) []ratelimit.Usage
	// Usage returns the counters of one key.
	Usage(now time.Time, k ratelimit.Key) []ratelimit.Usage
	// Top returns the most used counters of all.
	Top(now time.Time, limit int) []ratelimit.Usage
}

// StoredCounters reads the counters that all processes share.
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

// Options make a [Server]. All are required, except for those with a default or a meaning
// of nil.
type Options struct {
	Issuer   string        // sent to callers without a token, which they can get there
	Version  string        // of the program
	Instance func() string // ID of this process; it changes if a copy of the process runs under it

	Tokens   Tokens
	Users    Users
	Clients  Clients
	Policies *clientcfg.PolicySource
	Resets   *Resets            // that Policies calls, and that run
	Registry registry.Store     // clients and users, to be changed
	Events   clientcfg.EventLog // the audit trail
	// Passwords hashes the passwords that operators give users. Nil: one at a time.
	Passwords registry.Hasher
	Reports   Reports
	Counters  Counters
	Activity  *activity.Recorder
	Bans      *bans.Bans

	// ClientsElsewhere is set if the clients that are limited are registered with another server: limits can then be set
	// for any, and none is missing.
	ClientsElsewhere bool

	// Stored are the shared counters, including keys that only other processes serve. Nil:
	// there are none.
	Stored StoredCounters
	// Sync returns how this process shares its counts. Nil: it does not share them.
	Sync func() adminapi.SyncState

	// File returns what became of the configuration file of this process. Nil: that is not known.
	File func() adminapi.ConfigFile

	// Backups copies and restores the data file. Nil: the store is none.
	Backups Backups
	// LocalToken makes its sender an operator, from a loopback address: who can read what lies beside
	// the data file. Empty: there is none.
	LocalToken string
	// UserHash returns what stands for a username in the log. Nil: nothing does.
	UserHash func(username string) string

	// AuditKept is how long audit entries are kept: 400 days if 0.
	AuditKept time.Duration
	Now       func() time.Time // time.Now
	// Clock is the process time that counters go by (package clock). Nil: Now.
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
	if o.UserHash == nil {
		o.UserHash = func(string) string { return "" }
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
		{"Users", o.Users == nil},
		{"Clients", o.Clients == nil},
		{"Policies", o.Policies == nil},
		{"Resets", o.Resets == nil},
		{"Registry", o.Registry == nil},
		{"Events", o.Events == nil},
		{"Reports", o.Reports == nil},
		{"Counters", o.Counters == nil},
		{"Activity", o.Activity == nil},
		{"Bans", o.Bans == nil},
	} {
		if need.missing {
			errs = append(errs, fmt.Errorf("admin: Options.%s is missing", need.name))
		}
	}
	return errors.Join(errs...)
}
