package admin

import (
	"context"
	"log/slog"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/guard"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/admin/resets"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
)

// StoredCounters reads the counters shared by all processes.
type StoredCounters interface {
	// CountersOf returns at most limit counters of a client, in any order: of all its users, or of
	// one username if it is not nil.
	CountersOf(ctx context.Context, clientID string, username *string, limit int) ([]exchange.Record, error)
}

// Reports reads the heartbeats of all instances.
type Reports interface {
	// Reports returns the records of all instances with a heartbeat within ttl, by the store's
	// clock, with their reports, ordered by ID.
	Reports(ctx context.Context, ttl time.Duration) ([]syncer.Instance, error)
}

// Options configure a [Server]. All fields are required, unless a default or a meaning of the zero
// value is noted.
type Options struct {
	// Operator makes the Server one for a command that has opened the store. The command calls it in
	// its own process, so every request comes from this operator, without a token. Only Registry and
	// Events are required then, and only clients and users are served. Empty disables it.
	Operator string

	Issuer   string        // sent to callers without a token, because they can get one there
	Version  string        // of the program
	Instance func() string // ID of this process; it changes if a copy of the process runs under the same ID

	Tokens   guard.Tokens
	Users    guard.Users
	Clients  *clientcfg.Source
	Policies *clientcfg.PolicySource
	Resets   *resets.Resets     // called by Policies; must be running
	Registry registry.Store     // for changing clients and users
	Events   clientcfg.EventLog // the audit trail
	// Passwords hashes the passwords that operators set for users. Nil hashes one at a time.
	Passwords registry.Hasher
	Reports   Reports // nil: there are no other instances
	Counters  *counting.Counters
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
	// UserHash returns the text that represents a username in the log.
	UserHash func(username string) string

	AuditKept time.Duration    // how long audit entries are kept
	Now       func() time.Time // time.Now
	// Clock is the process time for counters (package clock). The default is Now.
	Clock  func() time.Time
	Logger *slog.Logger // discards
}

func (o *Options) setDefaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = o.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Operator != "" {
		o.Instance = func() string { return "" }
	}
}
