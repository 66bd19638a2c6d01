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
	// AdminListen is the host:port of the admin API. Empty: none.
	AdminListen string `json:"admin_listen,omitempty"`
	// AdminTLS is the certificate of AdminListen, instead of that of TLS. With one of them, operators
	// are served by HTTPS.
	AdminTLS TLS `json:"admin_tls,omitzero"`
	// AdminClientCA is a PEM file of certificates. If it is given, a connection to AdminListen needs
	// a client certificate that one of them has signed.
	AdminClientCA string `json:"admin_client_ca,omitempty"`
	// TLS makes the server speak HTTPS. Without it the server speaks HTTP, for a proxy
	// that speaks HTTPS.
	TLS TLS `json:"tls,omitzero"`
	// TrustedProxies are the peers whose TrustedHeader and X-Request-Id are believed. Behind a
	// proxy that speaks HTTPS for the server they have to be given, or none.
	TrustedProxies Proxies `json:"trusted_proxies,omitempty"`
	// TrustedHeader is the header in which they name the client. They overwrite it or append to it.
	TrustedHeader string `json:"trusted_header"`
	// TrustedHops is how many of them a request passes at most, one behind the other.
	TrustedHops int `json:"trusted_hops"`
	// DrainDelay is how long after SIGTERM the server answers as before, while its readiness
	// fails, so that load balancers turn to other instances. 0: it stops at once.
	DrainDelay Duration `json:"drain_delay"`
	// ShutdownTimeout bounds the graceful stop after that.
	ShutdownTimeout Duration `json:"shutdown_timeout"`
	Log             Log      `json:"log"`
	// LogUsers is of which token requests the log says whom they are for: [LogAllUsers] or [LogDeniedUsers].
	LogUsers string `json:"log_users"`
	// LogUsernames logs users by their names in clear, instead of hashes of them.
	LogUsernames bool    `json:"log_usernames,omitempty"`
	Metrics      Metrics `json:"metrics"`
	Tracing      Tracing `json:"tracing"`
	Store        Store   `json:"store"`
	// Migrate brings a MongoDB database to the layout of this release at the start.
	// Without it, the server does not start on an older layout.
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

// TLS is the certificate chain and the private key, PEM files that are read again when
// they change.
type TLS struct {
	CertFile string `json:"cert_file,omitempty"`
	KeyFile  string `json:"key_file,omitempty"`
}

// Enabled reports whether the server speaks HTTPS.
func (t TLS) Enabled() bool { return t.CertFile != "" }

// OperatorTLS is the certificate of AdminListen; not enabled if it speaks HTTP.
func (c *Config) OperatorTLS() TLS {
	if c.AdminTLS.Enabled() {
		return c.AdminTLS
	}
	return c.TLS
}

// Log is what is logged, on standard error.
type Log struct {
	Format string `json:"format"` // text or json
	Level  string `json:"level"`  // debug, info, warn or error
}

// Metrics configures /metrics on AdminListen.
type Metrics struct {
	// MaxClients is how many clients have a label, at most. The rest is counted together.
	MaxClients int `json:"max_clients"`
}

// Tracing configures traces of requests.
type Tracing struct {
	// Endpoint is the URL of an OTLP/HTTP collector. Empty: nothing is traced.
	Endpoint string `json:"endpoint,omitempty"`
	// SampleRatio is the share of requests that are traced, 0 to 1.
	SampleRatio float64 `json:"sample_ratio"`
}

// Store is where everything is stored: one of the two, or none for the default.
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
	URI string `json:"uri,omitempty"`
	// URIFile is a file that holds the URI, so that its password need not stand in the
	// environment or in the configuration.
	URIFile  string `json:"uri_file,omitempty"`
	Database string `json:"database"`
}

// Tokens is the signature and the lifetimes of tokens.
type Tokens struct {
	Algorithm  keys.Algorithm `json:"algorithm"`
	AccessTTL  Duration       `json:"access_ttl"`
	RefreshTTL Duration       `json:"refresh_ttl"`
	CodeTTL    Duration       `json:"code_ttl"`
	// RefreshGrace is how long a refresh token that was used is answered with the same successor
	// again, unless that was used. 0: never.
	RefreshGrace Duration `json:"refresh_grace"`
	// RefreshMaxAge is when refreshing ends, counted from the sign-in.
	RefreshMaxAge Duration `json:"refresh_max_age"`
	// KeyRotation is the age at which the signing key is replaced.
	KeyRotation Duration `json:"key_rotation"`
}

// Sessions is how long a browser stays signed in, how many of one user, and how many codes each gets.
type Sessions struct {
	TTL Duration `json:"ttl"`
	// PerUser is how many sessions a user has at most; one more ends the oldest.
	PerUser int `json:"per_user"`
	// Codes is how many authorization codes a session gets within the lifetime of a code.
	Codes int64 `json:"codes"`
}

// Passwords bounds the work of checking passwords, which is expensive on purpose.
type Passwords struct {
	// Concurrency is how many are checked at once, with 19 MiB each. Zero: half of the
	// processors, at most 8, and at most what a quarter of the memory is enough for.
	Concurrency int `json:"concurrency,omitempty"`
	// Processes is where they are hashed: in processes of the lowest priority where the system has
	// these ("auto"), or in the server ("off").
	Processes string `json:"processes"`
	// SignInsPerMinute is how many right passwords of one username are taken from one
	// address (an IPv6 address counts as its /64).
	SignInsPerMinute int64 `json:"sign_ins_per_minute"`
}

// The values of [Passwords].Processes.
const (
	ProcessesAuto = "auto"
	ProcessesOff  = "off"
)

// Sync is how the counts of the limiter are shared through the store.
type Sync struct {
	// Interval is how long the counts of a key with half its limit in use wait; those of
	// a key far below its limit wait up to ten times as long. Counts so near the limit
	// that they could change a decision elsewhere do not wait.
	Interval Duration `json:"interval"`
}

// Audit is the trail of what operators changed.
type Audit struct {
	// Keep is how long an entry is kept.
	Keep Duration `json:"keep"`
}

// Inspection limits the requests of one client to /introspect and /revoke, in each process.
type Inspection struct {
	IntrospectPerSecond int64 `json:"introspect_per_second"`
	RevokePerSecond     int64 `json:"revoke_per_second"`
}

// FailedAttempts limits wrong client secrets, wrong passwords, and codes and refresh tokens
// that are not valid. Only failures count, and only against the address that they come from
// (an IPv6 address counts as its /64), so that an attacker cannot lock out
// anyone at another address; see SlowAfter for new ones.
type FailedAttempts struct {
	Window  Duration     `json:"window"`
	Clients FailureQuota `json:"clients"` // client authentications
	Users   SignInQuota  `json:"users"`   // sign-ins
	Grants  FailureQuota `json:"grants"`  // codes and refresh tokens
}

// FailureQuota is how many failures are allowed per window.
type FailureQuota struct {
	PerAddress int64 `json:"per_address"` // from one address, in all
	PerName    int64 `json:"per_name"`    // from one address, with one client_id or username
}

// SignInQuota is how many passwords may be wrong. What it has beside the quota is over a day (SlowAfter
// and PerNameDaily), and for all instances together.
type SignInQuota struct {
	FailureQuota
	PerNameDaily int64 `json:"per_name_daily"` // from one address with one username
	// SlowAfter is how many with one username, from all addresses and without a right one in between,
	// slow down attempts from addresses that are not known. SlowWait is the time between those.
	SlowAfter int64    `json:"slow_after"`
	SlowWait  Duration `json:"slow_wait"`
}

// RateLimit is the limits on token requests: those of all clients, and the policies of
// single clients.
type RateLimit struct {
	// MaxKeys bounds the counters kept in memory.
	MaxKeys int `json:"max_keys"`
	// ErrorCode is the OAuth error code of an answer to a request over a limit.
	ErrorCode string `json:"error_code"`
	ratelimit.Settings
}
