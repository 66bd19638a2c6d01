package config

import (
	"oauth-server/internal/keys"
	"oauth-server/internal/ratelimit"
)

// Config is everything that can be configured. The json tags are the names of the
// fields in the file and in the paths of problems.
type Config struct {
	// Issuer is the public URL of the server, which is in every token and in
	// the metadata (RFC 8414). Empty: derived from a loopback Listen.
	Issuer string `json:"issuer,omitempty"`
	// Listen is the host:port that clients are served on.
	Listen string `json:"listen"`
	// AdminListen is the host:port of the operator API. Empty: none.
	AdminListen string `json:"admin_listen,omitempty"`
	// TLS makes the server speak HTTPS by itself; without it, it speaks HTTP
	// to a proxy that does.
	TLS TLS `json:"tls,omitzero"`
	// TrustedProxies are believed about the address a request came from.
	TrustedProxies []Prefix `json:"trusted_proxies,omitempty"`
	// ShutdownTimeout bounds a graceful stop.
	ShutdownTimeout Duration `json:"shutdown_timeout"`
	Log             Log      `json:"log"`
	Metrics         Metrics  `json:"metrics"`
	Tracing         Tracing  `json:"tracing"`
	Store           Store    `json:"store"`
	// Migrate brings a MongoDB database to the layout of this release at the
	// start, instead of refusing one that lacks it.
	Migrate        bool           `json:"migrate,omitempty"`
	Tokens         Tokens         `json:"tokens"`
	Sessions       Sessions       `json:"sessions"`
	FailedAttempts FailedAttempts `json:"failed_attempts"`
	Sync           Sync           `json:"sync"`
	Audit          Audit          `json:"audit"`
	// Scopes says in words what a scope allows, for the consent page.
	Scopes    map[string]string `json:"scopes,omitempty"`
	RateLimit RateLimit         `json:"rate_limit"`
}

// TLS names the certificate chain and the key, PEM files that are read again
// when they change.
type TLS struct {
	CertFile string `json:"cert_file,omitempty"`
	KeyFile  string `json:"key_file,omitempty"`
}

// Enabled reports whether the server speaks HTTPS by itself.
func (t TLS) Enabled() bool { return t.CertFile != "" }

// Log is what is logged, on standard error.
type Log struct {
	Format string `json:"format"` // text or json
	Level  string `json:"level"`  // debug, info, warn or error
}

// Metrics is what /metrics on AdminListen shows.
type Metrics struct {
	// MaxClients is how many clients have a label of their own, the busiest
	// and those with a policy; the rest is shown together.
	MaxClients int `json:"max_clients"`
}

// Tracing is where traces of requests are sent.
type Tracing struct {
	// Endpoint is the URL of an OTLP/HTTP collector. Empty: nothing is traced.
	Endpoint string `json:"endpoint,omitempty"`
	// SampleRatio is the share of requests that are traced.
	SampleRatio float64 `json:"sample_ratio"`
}

// Store is where everything is kept: one of the two.
type Store struct {
	Embedded *Embedded `json:"embedded,omitempty"`
	MongoDB  *MongoDB  `json:"mongodb,omitempty"`
}

// Embedded is one local file, for one process.
type Embedded struct {
	Path string `json:"path"`
}

// MongoDB is a database that any number of instances share.
type MongoDB struct {
	URI      string `json:"uri"`
	Database string `json:"database"`
}

// Tokens says how tokens are made and how long they live.
type Tokens struct {
	Algorithm  keys.Algorithm `json:"algorithm"`
	AccessTTL  Duration       `json:"access_ttl"`
	RefreshTTL Duration       `json:"refresh_ttl"`
	CodeTTL    Duration       `json:"code_ttl"`
	// KeyRotation is the age at which the signing key is replaced.
	KeyRotation Duration `json:"key_rotation"`
}

// Sessions is how long a browser stays signed in.
type Sessions struct {
	TTL Duration `json:"ttl"`
}

// Sync is how the counts of the limiter get to the store, and so to other
// instances.
type Sync struct {
	// Interval is how long counts wait that do not matter to other instances
	// yet: those of a key with half its limit in use, and up to ten times as
	// long those of a key far below it. Counts that do matter do not wait.
	Interval Duration `json:"interval"`
}

// Audit is the trail of what operators changed.
type Audit struct {
	// Keep is how long an entry is kept.
	Keep Duration `json:"keep"`
}

// FailedAttempts limits wrong client secrets and wrong passwords. Only failures
// count, and only against the address that they come from (an IPv6 address
// stands for its /64), so that nobody can lock somebody else out.
type FailedAttempts struct {
	Window  Duration     `json:"window"`
	Clients FailureQuota `json:"clients"` // client authentications
	Users   FailureQuota `json:"users"`   // sign-ins
}

// FailureQuota is how many failures a window may have.
type FailureQuota struct {
	PerAddress int64 `json:"per_address"` // from one address, in all
	PerName    int64 `json:"per_name"`    // from one address, with one client_id or username
}

// RateLimit is the limit on token requests: what holds for all clients, and the
// policies of those for which something else holds.
type RateLimit struct {
	// MaxKeys bounds the counters kept in memory.
	MaxKeys int `json:"max_keys"`
	ratelimit.Settings
}
