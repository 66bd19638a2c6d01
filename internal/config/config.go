package config

import (
	"oauth-server/internal/keys"
)

// Config is everything that can be configured. The yaml tags are the names of
// the fields in the file and in the paths of problems.
type Config struct {
	// Issuer is the public URL of the server, which is in every token and in
	// the metadata (RFC 8414). Empty: derived from a loopback Listen.
	Issuer string `yaml:"issuer,omitempty"`
	// Listen is the host:port that clients are served on.
	Listen string `yaml:"listen"`
	// AdminListen is the host:port of the operator API. Empty: none.
	AdminListen string `yaml:"admin_listen,omitempty"`
	// TLS makes the server speak HTTPS by itself; without it, it speaks HTTP
	// to a proxy that does.
	TLS TLS `yaml:"tls,omitempty"`
	// TrustedProxies are believed about the address a request came from.
	TrustedProxies []Prefix `yaml:"trusted_proxies,omitempty"`
	// ShutdownTimeout bounds a graceful stop.
	ShutdownTimeout Duration `yaml:"shutdown_timeout"`
	Log             Log      `yaml:"log"`
	Metrics         Metrics  `yaml:"metrics"`
	Tracing         Tracing  `yaml:"tracing"`
	Store           Store    `yaml:"store"`
	// Migrate brings a MongoDB database to the layout of this release at the
	// start, instead of refusing one that lacks it.
	Migrate        bool           `yaml:"migrate,omitempty"`
	Tokens         Tokens         `yaml:"tokens"`
	Sessions       Sessions       `yaml:"sessions"`
	FailedAttempts FailedAttempts `yaml:"failed_attempts"`
	Sync           Sync           `yaml:"sync"`
	Audit          Audit          `yaml:"audit"`
	// Scopes says in words what a scope allows, for the consent page.
	Scopes    map[string]string `yaml:"scopes,omitempty"`
	RateLimit RateLimit         `yaml:"rate_limit"`
}

// TLS names the certificate chain and the key, PEM files that are read again
// when they change.
type TLS struct {
	CertFile string `yaml:"cert_file,omitempty"`
	KeyFile  string `yaml:"key_file,omitempty"`
}

// Enabled reports whether the server speaks HTTPS by itself.
func (t TLS) Enabled() bool { return t.CertFile != "" }

// Log is what is logged, on standard error.
type Log struct {
	Format string `yaml:"format"` // text or json
	Level  string `yaml:"level"`  // debug, info, warn or error
}

// Metrics is what /metrics on AdminListen shows.
type Metrics struct {
	// MaxClients is how many clients have a label of their own, the busiest
	// and those with a policy; the rest is shown together.
	MaxClients int `yaml:"max_clients"`
}

// Tracing is where traces of requests are sent.
type Tracing struct {
	// Endpoint is the URL of an OTLP/HTTP collector. Empty: nothing is traced.
	Endpoint string `yaml:"endpoint,omitempty"`
	// SampleRatio is the share of requests that are traced.
	SampleRatio float64 `yaml:"sample_ratio"`
}

// Store is where everything is kept: one of the two.
type Store struct {
	Embedded *Embedded `yaml:"embedded,omitempty"`
	MongoDB  *MongoDB  `yaml:"mongodb,omitempty"`
}

// Embedded is one local file, for one process.
type Embedded struct {
	Path string `yaml:"path"`
}

// MongoDB is a database that any number of instances share.
type MongoDB struct {
	URI      string `yaml:"uri"`
	Database string `yaml:"database"`
}

// Tokens says how tokens are made and how long they live.
type Tokens struct {
	Algorithm  keys.Algorithm `yaml:"algorithm"`
	AccessTTL  Duration       `yaml:"access_ttl"`
	RefreshTTL Duration       `yaml:"refresh_ttl"`
	CodeTTL    Duration       `yaml:"code_ttl"`
	// KeyRotation is the age at which the signing key is replaced.
	KeyRotation Duration `yaml:"key_rotation"`
}

// Sessions is how long a browser stays signed in.
type Sessions struct {
	TTL Duration `yaml:"ttl"`
}

// Sync is how the counts of the limiter get to the store, and so to other
// instances.
type Sync struct {
	// Interval is how long counts wait that do not matter to other instances
	// yet: those of a key with half its limit in use, and up to ten times as
	// long those of a key far below it. Counts that do matter do not wait.
	Interval Duration `yaml:"interval"`
}

// Audit is the trail of what operators changed.
type Audit struct {
	// Keep is how long an entry is kept.
	Keep Duration `yaml:"keep"`
}

// FailedAttempts limits wrong client secrets and wrong passwords. Only failures
// count, and only against the address that they come from (an IPv6 address
// stands for its /64), so that nobody can lock somebody else out.
type FailedAttempts struct {
	Window  Duration     `yaml:"window"`
	Clients FailureQuota `yaml:"clients"` // client authentications
	Users   FailureQuota `yaml:"users"`   // sign-ins
}

// FailureQuota is how many failures a window may have.
type FailureQuota struct {
	PerAddress int64 `yaml:"per_address"` // from one address, in all
	PerName    int64 `yaml:"per_name"`    // from one address, with one client_id or username
}

// RateLimit is the limit on token requests: what holds for everybody, and the
// clients for which something else holds. [RateLimit.Settings] is what
// internal/ratelimit makes of it.
type RateLimit struct {
	Mode string `yaml:"mode"` // enforce, dry_run or off
	// InstanceMode is the mode of this process alone, before all others.
	InstanceMode string `yaml:"instance_mode,omitempty"`
	// CanaryPercent is the share of clients that enforce applies to; the
	// others are in dry-run.
	CanaryPercent float64 `yaml:"canary_percent"`
	// MaxKeys bounds the counters kept in memory.
	MaxKeys int                     `yaml:"max_keys"`
	Default DefaultPolicy           `yaml:"default"`
	Clients map[string]ClientPolicy `yaml:"clients,omitempty"`
}

// DefaultPolicy holds for every client that has none of its own. All limits of
// a list must pass.
type DefaultPolicy struct {
	User        []Limit `yaml:"user,omitempty"`   // for each client and user
	Client      []Limit `yaml:"client,omitempty"` // for each client, client_credentials
	HideHeaders bool    `yaml:"hide_headers,omitempty"`
}

// ClientPolicy is what differs from the default for one client.
type ClientPolicy struct {
	Trusted bool `yaml:"trusted,omitempty"` // never denied
	// Mode overrides the global mode, canary included. Empty: it does not.
	Mode string `yaml:"mode,omitempty"`
	// HideHeaders leaves the RateLimit fields out of this client's answers.
	HideHeaders bool `yaml:"hide_headers,omitempty"`
	// User and Client replace the default's lists; absent ones do not.
	User   []Limit `yaml:"user,omitempty"`
	Client []Limit `yaml:"client,omitempty"`
}

// Limit admits so many requests per window; see [ratelimit.Limit].
type Limit struct {
	Name      string   `yaml:"name"`
	Requests  int64    `yaml:"requests"`
	Window    Duration `yaml:"window"`
	Frames    int      `yaml:"frames"`     // that make up a window
	Algorithm string   `yaml:"algorithm"`  // sliding, weighted or fixed
	SoftRatio float64  `yaml:"soft_ratio"` // share from which on the client is warned
	OnOutage  string   `yaml:"on_outage"`  // share, memory or deny: how it is decided while the store is away
}
