package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/registry"
	"oauth-server/internal/syncer"
)

// Tokens verifies bearer tokens. [grants.Service] implements it.
type Tokens interface {
	// Bearer returns the claims of a valid token. It wraps [grants.ErrBearer] for an invalid token.
	// Any other error means that the token could not be checked.
	Bearer(ctx context.Context, token string) (keys.Claims, error)
}

// Users looks up users. [grants.Users] implements it.
type Users interface {
	// User returns the user with that name, or an error that wraps [grants.ErrNotFound].
	User(ctx context.Context, name string) (grants.User, error)
}

// Clients looks up registered clients. [clientcfg.Source] implements it.
type Clients interface {
	// Directory returns the current snapshot.
	Directory() *clientcfg.Directory
	// Renew reads changes from the store, unless the snapshot was current at most atMost ago.
	Renew(ctx context.Context, atMost time.Duration) error
	// CheckedAt returns when the snapshot was last known to be current.
	CheckedAt() time.Time
}

// Counters reads the counters of this process. [ratelimit.Counters] implements it.
type Counters interface {
	// ClientUsage returns the most used counters of a client and its users.
	ClientUsage(now time.Time, clientID string, limit int) []ratelimit.Usage
	// Usage returns the counters of one key.
	Usage(now time.Time, k ratelimit.Key) []ratelimit.Usage
	// Top returns the most used counters of all.
	Top(now time.Time, limit int) []ratelimit.Usage
}

// StoredCounters reads the counters shared by all processes.
type StoredCounters interface {
	// CountersOf returns at most limit counters of a client, in any order: of all its users, or of
	// one username if it is not nil.
	CountersOf(ctx context.Context, clientID string, username *string, limit int) ([]syncer.Record, error)
}

// Reports reads the heartbeats of all instances.
type Reports interface {
	// Reports returns the records of all instances with a heartbeat within ttl, by the store's
	// clock, with their reports, ordered by ID.
	Reports(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error)
}

// Options configure a [Server]. All fields are required, unless a default or a meaning of nil is
// noted.
type Options struct {
	// Operator makes the Server one for a command that has opened the store. The command calls it in
	// its own process, so every request comes from this operator, without a token. Only Registry and
	// Events are required then, and only clients and users are served. Empty disables it.
	Operator string

	Issuer   string        // sent to callers without a token, because they can get one there
	Version  string        // of the program
	Instance func() string // ID of this process; it changes if a copy of the process runs under the same ID

	Tokens   Tokens
	Users    Users
	Clients  Clients
	Policies *clientcfg.PolicySource
	Resets   *Resets            // called by Policies; must be running
	Registry registry.Store     // for changing clients and users
	Events   clientcfg.EventLog // the audit trail
	// Passwords hashes the passwords that operators set for users. Nil hashes one at a time.
	Passwords registry.Hasher
	Reports   Reports
	Counters  Counters
	Activity  *activity.Recorder
	Bans      *bans.Bans

	// ClientsElsewhere is set if the limited clients are registered with another server. Then
	// limits can be set for any client, and no client counts as missing.
	ClientsElsewhere bool

	// Stored reads the shared counters, including keys that only other processes serve. Nil means
	// that there are no shared counters.
	Stored StoredCounters
	// Sync returns how this process shares its counts. Nil means that it does not share them.
	Sync func() adminapi.SyncState

	// File returns the state of this process's configuration file. Nil means unknown.
	File func() adminapi.ConfigFile

	// Backups copies and restores the data file. Nil means that the store is not a file.
	Backups Backups
	// LocalToken makes its sender an operator if it comes from a loopback address, because the
	// sender can read the files beside the data file. Empty disables it.
	LocalToken string
	// UserHash returns the text that represents a username in the log. Nil means no text.
	UserHash func(username string) string

	// AuditKept is how long audit entries are kept. 0 means 400 days.
	AuditKept time.Duration
	Now       func() time.Time // time.Now
	// Clock is the process time for counters (package clock). The default is Now.
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
	if o.Operator != "" {
		o.Instance = func() string { return "" }
	}
}

// validate returns everything that is missing, joined.
func (o *Options) validate() error {
	var errs []error
	for _, need := range []struct {
		name    string
		missing bool
		always  bool // also with Operator
	}{
		{"Issuer", o.Issuer == "", false},
		{"Instance", o.Instance == nil, false},
		{"Tokens", o.Tokens == nil, false},
		{"Users", o.Users == nil, false},
		{"Clients", o.Clients == nil, false},
		{"Policies", o.Policies == nil, false},
		{"Resets", o.Resets == nil, false},
		{"Registry", o.Registry == nil, true},
		{"Events", o.Events == nil, true},
		{"Reports", o.Reports == nil, false},
		{"Counters", o.Counters == nil, false},
		{"Activity", o.Activity == nil, false},
		{"Bans", o.Bans == nil, false},
	} {
		if need.missing && (need.always || o.Operator == "") {
			errs = append(errs, fmt.Errorf("admin: Options.%s is missing", need.name))
		}
	}
	return errors.Join(errs...)
}
