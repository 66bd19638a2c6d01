package config

import (
	"oauth-server/internal/keys"
	"oauth-server/internal/ratelimit"
)

// Config is the whole configuration. The json tags are the names of the fields in the file and in
// the paths of problems.
type Config struct {
	// Issuer is the public URL of the server. It is in every token and in the metadata (RFC 8414).
	// Empty: derived from a loopback Listen.
	Issuer string `json:"issuer,omitempty"`
	// Listen is the host:port that serves clients.
	Listen string `json:"listen"`
	// AdminListen is the host:port of the admin API. Empty: no admin API.
	AdminListen string `json:"admin_listen,omitempty"`
	// AdminTLS is the certificate of AdminListen. Without it AdminListen uses the certificate of
	// TLS. With either of them, operators are served by HTTPS.
	AdminTLS TLS `json:"admin_tls,omitzero"`
	// AdminClientCA is a PEM file of certificates. If set, a connection to AdminListen needs a
	// client certificate signed by one of them.
	AdminClientCA string `json:"admin_client_ca,omitempty"`
	// TLS makes the server speak HTTPS. Without it the server speaks HTTP, for a proxy
	// that speaks HTTPS.
	TLS TLS `json:"tls,omitzero"`
	// TrustedProxies are the peers that may set TrustedHeader and X-Request-Id. Behind a proxy that
	// terminates HTTPS for the server, the setting is required; it may be "none".
	TrustedProxies Proxies `json:"trusted_proxies,omitempty"`
	// TrustedHeader is the header in which trusted proxies name the client. They overwrite it or
	// append to it.
	TrustedHeader string `json:"trusted_header"`
	// TrustedHops is the maximum number of trusted proxies that a request passes, one behind the
	// other.
	TrustedHops int `json:"trusted_hops"`
	// DrainDelay is how long the server keeps answering after SIGTERM while its readiness fails, so
	// that load balancers switch to other instances. 0: it stops at once.
	DrainDelay Duration `json:"drain_delay"`
	// ShutdownTimeout bounds the graceful stop after that.
	ShutdownTimeout Duration `json:"shutdown_timeout"`
	Log             Log      `json:"log"`
	// LogUsers selects the token requests that are logged with their user: [LogAllUsers] or
	// [LogDeniedUsers].
	LogUsers string `json:"log_users"`
	// LogUsernames logs usernames in clear instead of their hashes.
	LogUsernames bool    `json:"log_usernames,omitempty"`
	Metrics      Metrics `json:"metrics"`
	Tracing      Tracing `json:"tracing"`
	Store        Store   `json:"store"`
	// Migrate brings a MongoDB database to the layout of this release at start. Without it, the
	// server does not start on an older layout.
	Migrate        bool           `json:"migrate,omitempty"`
	Tokens         Tokens         `json:"tokens"`
	Keys           Keys           `json:"keys,omitzero"`
	Sessions       Sessions       `json:"sessions"`
	Passwords      Passwords      `json:"passwords"`
	FailedAttempts FailedAttempts `json:"failed_attempts"`
	Inspection     Inspection     `json:"inspection"`
	Sync           Sync           `json:"sync"`
	Audit          Audit          `json:"audit"`
	// Scopes describes what a scope allows, for the consent page.
	Scopes    map[string]string `json:"scopes,omitempty"`
	RateLimit RateLimit         `json:"rate_limit"`
	Overload  Overload          `json:"overload"`
	Gateway   Gateway           `json:"gateway"`
}

// TLS names PEM files with the certificate chain and the private key. They are read again when they
// change.
type TLS struct {
	CertFile string `json:"cert_file,omitempty"`
	KeyFile  string `json:"key_file,omitempty"`
}

// Enabled reports whether the server speaks HTTPS.
func (t TLS) Enabled() bool { return t.CertFile != "" }

// OperatorTLS returns the certificate of AdminListen. It is not enabled if AdminListen speaks HTTP.
func (c *Config) OperatorTLS() TLS {
	if c.AdminTLS.Enabled() {
		return c.AdminTLS
	}
	return c.TLS
}

// Log configures the log on standard error.
type Log struct {
	Format string `json:"format"` // text or json
	Level  string `json:"level"`  // debug, info, warn or error
}

// Metrics configures /metrics on AdminListen.
type Metrics struct {
	// MaxClients is the maximum number of clients with a label of their own. The others are counted
	// together.
	MaxClients int `json:"max_clients"`
}

// Tracing configures traces of requests.
type Tracing struct {
	// Endpoint is the URL of an OTLP/HTTP collector. Empty: no tracing.
	Endpoint string `json:"endpoint,omitempty"`
	// SampleRatio is the share of requests that are traced, 0 to 1.
	SampleRatio float64 `json:"sample_ratio"`
}

// Store configures the storage: one of the two, or neither for the default.
type Store struct {
	Embedded *Embedded `json:"embedded,omitempty"`
	MongoDB  *MongoDB  `json:"mongodb,omitempty"`
}

// Embedded is one local file, for one process.
type Embedded struct {
	Path string `json:"path"`
}

// MongoDB is a database shared by any number of instances.
type MongoDB struct {
	URI string `json:"uri,omitempty"`
	// URIFile is a file that holds the URI. It keeps the password out of the environment and the
	// configuration.
	URIFile  string `json:"uri_file,omitempty"`
	Database string `json:"database"`
}

// Tokens configures the signature and the lifetimes of tokens.
type Tokens struct {
	Algorithm  keys.Algorithm `json:"algorithm"`
	AccessTTL  Duration       `json:"access_ttl"`
	RefreshTTL Duration       `json:"refresh_ttl"`
	CodeTTL    Duration       `json:"code_ttl"`
	// RefreshGrace is how long a used refresh token still returns the same successor, as long as
	// the successor is unused. 0: never.
	RefreshGrace Duration `json:"refresh_grace"`
	// RefreshMaxAge is how long after the sign-in tokens can be refreshed.
	RefreshMaxAge Duration `json:"refresh_max_age"`
	// KeyRotation is the age at which the signing key is replaced.
	KeyRotation Duration `json:"key_rotation"`
}

// Sessions configures how long a browser stays signed in, and how many codes each session gets.
type Sessions struct {
	TTL Duration `json:"ttl"`
	// Codes is how many authorization codes a session gets within the lifetime of one code.
	Codes int64 `json:"codes"`
}

// Passwords bounds the work of checking passwords, which is deliberately expensive.
type Passwords struct {
	// Concurrency is how many passwords are checked at once, each with 19 MiB. Zero: half of the
	// processors, at most 8, and at most as many as fit into a quarter of the memory.
	Concurrency int `json:"concurrency,omitempty"`
	// Processes selects where passwords are hashed: in processes of the lowest priority if the
	// system supports that ("auto"), or in the server ("off").
	Processes string `json:"processes"`
	// SignInsPerMinute is how many correct passwords of one username are accepted from one address
	// (an IPv6 address counts as its /64).
	SignInsPerMinute int64 `json:"sign_ins_per_minute"`
}

// The values of [Passwords].Processes.
const (
	ProcessesAuto = "auto"
	ProcessesOff  = "off"
)

// Sync configures how the counts of the limiter are shared through the store.
type Sync struct {
	// Interval is how long the counts of a key wait that uses half of its limit. The counts of a
	// key far below its limit wait up to ten times as long. Counts so near the limit that they
	// could change a decision at another instance do not wait.
	Interval Duration `json:"interval"`
}

// Audit configures the trail of changes by operators.
type Audit struct {
	// Keep is how long an entry is kept.
	Keep Duration `json:"keep"`
}

// Inspection limits the requests of one client to /introspect and /revoke, in each process.
type Inspection struct {
	IntrospectPerSecond int64 `json:"introspect_per_second"`
	RevokePerSecond     int64 `json:"revoke_per_second"`
}

// FailedAttempts limits wrong client secrets, wrong passwords, and invalid codes and refresh
// tokens. Only failures count, and only against the address that they come from (an IPv6 address
// counts as its /64), so an attacker cannot lock out users at other addresses. For new addresses
// see SlowAfter.
type FailedAttempts struct {
	Window  Duration     `json:"window"`
	Clients FailureQuota `json:"clients"` // client authentications
	Users   SignInQuota  `json:"users"`   // sign-ins
	Grants  FailureQuota `json:"grants"`  // codes and refresh tokens
}

// FailureQuota is how many failures are allowed per window.
type FailureQuota struct {
	PerAddress int64 `json:"per_address"` // from one address in total
	PerName    int64 `json:"per_name"`    // from one address, with one client_id or username
}

// SignInQuota is how many wrong passwords are allowed. In addition to the quota it has limits over
// a day (SlowAfter and PerNameDaily), which count for all instances together.
type SignInQuota struct {
	FailureQuota
	PerNameDaily int64 `json:"per_name_daily"` // from one address with one username
	// SlowAfter is a number of wrong passwords with one username, from all addresses and without a
	// correct one in between. After it, attempts from unknown addresses are slowed down to one per
	// SlowWait.
	SlowAfter int64    `json:"slow_after"`
	SlowWait  Duration `json:"slow_wait"`
}

// RateLimit has the limits on token requests: the default limits of all clients, and the policies
// of single clients.
type RateLimit struct {
	// MaxKeys bounds the counters kept in memory.
	MaxKeys int `json:"max_keys"`
	// ErrorCode is the OAuth error code of the response to a request over a limit.
	ErrorCode string `json:"error_code"`
	ratelimit.Settings
}
