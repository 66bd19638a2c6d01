package config

import (
	"time"

	"oauth-server/internal/keys"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// DefaultStorePath is the path of the embedded store if no store is configured.
const DefaultStorePath = "oauth-server.db"

// DefaultAdminListen is the address of the admin listener if none is configured. If that address is
// in use, the server runs without an admin listener.
const DefaultAdminListen = "127.0.0.1:9097"

// DefaultDatabase is the MongoDB database if none is configured.
const DefaultDatabase = "oauth"

// Default returns the configuration without any source: a server that listens only on loopback and
// stores everything in [DefaultStorePath].
func Default() *Config {
	return &Config{
		Listen:          "127.0.0.1:9096",
		AdminListen:     DefaultAdminListen,
		TrustedHeader:   xForwardedFor,
		LogUsers:        LogAllUsers,
		TrustedHops:     1,
		DrainDelay:      Duration(5 * time.Second),
		ShutdownTimeout: Duration(10 * time.Second),
		Log:             Log{Format: "text", Level: "info"},
		Metrics:         Metrics{MaxClients: 200},
		Tracing:         Tracing{SampleRatio: 0.1},
		Store:           Store{Embedded: &Embedded{Path: DefaultStorePath}},
		Tokens: Tokens{
			Algorithm:     keys.ES256,
			AccessTTL:     Duration(time.Hour),
			RefreshTTL:    Duration(30 * 24 * time.Hour),
			CodeTTL:       Duration(5 * time.Minute),
			RefreshGrace:  Duration(30 * time.Second),
			RefreshMaxAge: Duration(90 * 24 * time.Hour),
			KeyRotation:   Duration(90 * 24 * time.Hour),
		},
		Sessions:  Sessions{TTL: Duration(12 * time.Hour), Codes: 120},
		Passwords: Passwords{Processes: ProcessesAuto, SignInsPerMinute: 120},
		FailedAttempts: FailedAttempts{
			Window:  Duration(time.Minute),
			Clients: FailureQuota{PerAddress: 300, PerName: 60},
			Users: SignInQuota{
				FailureQuota: FailureQuota{PerAddress: 100, PerName: 20},
				PerNameDaily: 200, SlowAfter: 100,
			},
			Grants: FailureQuota{PerAddress: 6000, PerName: 3000},
		},
		Inspection: Inspection{IntrospectPerSecond: 600, RevokePerSecond: 100},
		Sync:       Sync{Interval: Duration(time.Second)},
		Audit:      Audit{Keep: Duration(400 * 24 * time.Hour)},
		RateLimit:  RateLimit{Settings: ratelimit.DefaultSettings(), MaxKeys: counting.DefaultMaxKeys, ErrorCode: "temporarily_unavailable"},
		Overload:   defaultOverload(),
		Gateway:    defaultGateway(),
	}
}

// SetDefaults sets the database to [DefaultDatabase].
func (m *MongoDB) SetDefaults() { m.Database = DefaultDatabase }
