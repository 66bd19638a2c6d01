package config

import (
	"oauth-server/internal/keys"
	"oauth-server/internal/ratelimit"
)

// Config is the whole configuration. The json tags are the names of the fields in the file and in
// the paths of problems. A field with a help tag is an [Option] too. Its range tag has the lowest and
// the highest value, its values tag all values. Its redact tag names the part that is never printed:
// the password of a URL, or all.
type Config struct {
	// Issuer is the public URL of the server. It is in every token and in the metadata (RFC 8414).
	// Empty: derived from a loopback Listen.
	Issuer      string `json:"issuer,omitempty" help:"public URL of the server; empty: derived from a loopback --listen" redact:"password"`
	Listen      string `json:"listen" help:"host:port to serve clients on; port 0: any free port"`
	AdminListen string `json:"admin_listen,omitempty" help:"host:port to serve metrics, health and the admin API on; empty: off"`
	// AdminTLS is the certificate of AdminListen. Without it AdminListen uses the certificate of
	// TLS. With either of them, operators are served by HTTPS.
	AdminTLS TLS `json:"admin_tls,omitzero" help:"for the admin address only:"`
	// AdminClientCA is a PEM file of certificates. If set, a connection to AdminListen needs a
	// client certificate signed by one of them.
	AdminClientCA string `json:"admin_client_ca,omitempty" help:"PEM file of a CA; the admin address then requires client certificates from it"`
	// AdminProfiles serves profiles of the process at AdminListen, for operators.
	AdminProfiles bool `json:"admin_profiles,omitempty" help:"serve profiles of the process at /debug/pprof/ of the admin address, to operators with registrations:write"`
	// TLS makes the server speak HTTPS. Without it the server speaks HTTP, for a proxy
	// that speaks HTTPS.
	TLS TLS `json:"tls,omitzero"`
	// TrustedProxies are the peers that may set TrustedHeader and X-Request-Id. Behind a proxy that
	// terminates HTTPS for the server, the setting is required; it may be "none".
	TrustedProxies Proxies `json:"trusted_proxies,omitempty" help:"addresses and ranges of the proxies in front; none: there is no proxy"`
	// TrustedHeader is the header in which trusted proxies name the client. They overwrite it or
	// append to it.
	TrustedHeader string `json:"trusted_header" help:"header with the client's address: x-forwarded-for or forwarded (RFC 7239)" values:"x-forwarded-for forwarded"`
	TrustedHops   int    `json:"trusted_hops" help:"number of proxies in a row that append to the header" range:"1 100"`
	// DrainDelay is how long the server keeps answering after SIGTERM while its readiness fails, so
	// that load balancers switch to other instances. 0: it stops at once.
	DrainDelay      Duration `json:"drain_delay" help:"how long to serve requests after SIGTERM while /readyz fails; 0s: not at all" range:"0s 1h"`
	ShutdownTimeout Duration `json:"shutdown_timeout" help:"limit for a graceful stop, after drain_delay" range:"1s 1h"`
	Log             Log      `json:"log"`
	// LogUsers selects the token requests that are logged with their user: [LogAllUsers] or
	// [LogDeniedUsers].
	LogUsers     string  `json:"log_users" help:"which token requests are logged with their user: all, or denied (over a limit)" values:"all denied"`
	LogUsernames bool    `json:"log_usernames,omitempty" help:"log usernames instead of keyed hashes"`
	Metrics      Metrics `json:"metrics"`
	Tracing      Tracing `json:"tracing"`
	Store        Store   `json:"store"`
	// Migrate brings a MongoDB database to the layout of this release at start. Without it, the
	// server does not start on an older layout.
	Migrate        bool           `json:"migrate,omitempty" help:"run migrate up on the MongoDB database before serving"`
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
	CertFile string `json:"cert_file,omitempty" help:"PEM file of the certificate chain; enables HTTPS"`
	KeyFile  string `json:"key_file,omitempty" help:"PEM file of the private key"`
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
	Format string `json:"format" help:"text or json" values:"text json"`
	Level  string `json:"level" help:"debug, info, warn or error" values:"debug info warn error"`
}

// Metrics configures /metrics on AdminListen.
type Metrics struct {
	MaxClients int `json:"max_clients" help:"clients with series of their own in /metrics; all others share one" range:"0 10000"`
}

// Tracing configures traces of requests.
type Tracing struct {
	Endpoint    string  `json:"endpoint,omitempty" help:"URL of an OTLP/HTTP collector for traces; empty: no tracing" redact:"password"`
	SampleRatio float64 `json:"sample_ratio" help:"share of requests to trace, 0 to 1" range:"0 1"`
}

// Store configures the storage: one of the two, or neither for the default.
type Store struct {
	Embedded *Embedded `json:"embedded,omitempty"`
	MongoDB  *MongoDB  `json:"mongodb,omitempty"`
}

// Embedded is one local file, for one process.
type Embedded struct {
	Path string `json:"path" flag:"data" help:"file of the embedded store"`
}

// MongoDB is a database shared by any number of instances.
type MongoDB struct {
	URI string `json:"uri,omitempty" help:"URI of the MongoDB that stores everything, instead of --data" redact:"password"`
	// URIFile is a file that holds the URI. It keeps the password out of the environment and the
	// configuration.
	URIFile  string `json:"uri_file,omitempty" help:"file with the URI, instead of --mongodb-uri"`
	Database string `json:"database" help:"MongoDB database name"`
}

// Tokens configures the signature and the lifetimes of tokens.
type Tokens struct {
	Algorithm  keys.Algorithm `json:"algorithm" help:"signature algorithm of access tokens: ES256, EdDSA or RS256" values:"ES256 EdDSA RS256"`
	AccessTTL  Duration       `json:"access_ttl" help:"lifetime of an access token" range:"1s 720h"`
	RefreshTTL Duration       `json:"refresh_ttl" help:"lifetime of a refresh token" range:"1s 87600h"`
	CodeTTL    Duration       `json:"code_ttl" help:"lifetime of an authorization code; should be longer than the windows of user limits" range:"1s 10m"`
	// RefreshGrace is how long a used refresh token still returns the same successor, as long as
	// the successor is unused. 0: never.
	RefreshGrace  Duration `json:"refresh_grace" help:"how long a repeated refresh gets the same answer; 0s: never" range:"0s 10m"`
	RefreshMaxAge Duration `json:"refresh_max_age" help:"longest time from a sign-in to its last refresh" range:"1s 87600h"`
	KeyRotation   Duration `json:"key_rotation" help:"time between replacements of the signing key" range:"1h 87600h"`
}

// Sessions configures how long a browser stays signed in, and how many codes each session gets.
type Sessions struct {
	TTL   Duration `json:"ttl" help:"how long a browser stays signed in" range:"1m 8760h"`
	Codes int64    `json:"codes" help:"authorization codes per session within tokens.code_ttl, in each process" range:"1 1000000000"`
}

// Passwords bounds the work of checking passwords, which is deliberately expensive.
type Passwords struct {
	// Concurrency is how many passwords are checked at once, each with 19 MiB. Zero: half of the
	// processors, at most 8, and at most as many as fit into a quarter of the memory.
	Concurrency int `json:"concurrency,omitempty" help:"passwords hashed at once, 19 MiB each; empty: derived from processors and memory" range:"0 1024"`
	// Processes selects where passwords are hashed: in processes of the lowest priority if the
	// system supports that ("auto"), or in the server ("off").
	Processes string `json:"processes" help:"hash in processes of the lowest priority: auto (where that helps) or off" values:"auto off"`
	// SignInsPerMinute is how many correct passwords of one username are accepted from one address
	// (an IPv6 address counts as its /64).
	SignInsPerMinute int64 `json:"sign_ins_per_minute" help:"correct passwords for one username from one address" range:"1 1000000000"`
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
	Interval Duration `json:"interval" help:"how long counts wait before they are shared; less near a limit, ten times as long far below it" range:"10ms 1m"`
}

// Audit configures the trail of changes by operators.
type Audit struct {
	Keep Duration `json:"keep" help:"how long entries of the audit trail are kept" range:"24h 876000h"`
}

// Inspection limits the requests of one client to /introspect and /revoke, in each process.
type Inspection struct {
	IntrospectPerSecond int64 `json:"introspect_per_second" help:"requests per client to /introspect, in each process" range:"1 100000000"`
	RevokePerSecond     int64 `json:"revoke_per_second" help:"requests per client to /revoke, in each process" range:"1 100000000"`
}

// FailedAttempts limits wrong client secrets, wrong passwords, and invalid codes and refresh
// tokens. Only failures count, and only against the address that they come from (an IPv6 address
// counts as its /64), so an attacker cannot lock out users at other addresses. For new addresses
// see SlowAfter.
type FailedAttempts struct {
	Window  Duration     `json:"window" help:"window of the per_address and per_name limits" range:"1s 24h"`
	Clients FailureQuota `json:"clients" help:"wrong client secrets"`
	Users   SignInQuota  `json:"users" help:"wrong passwords"`
	Grants  FailureQuota `json:"grants" help:"invalid codes and refresh tokens of public clients"`
}

// FailureQuota is how many failures are allowed per window.
type FailureQuota struct {
	PerAddress int64 `json:"per_address" help:"from one address" range:"1 1000000000"`
	PerName    int64 `json:"per_name" help:"from one address for one client_id or username" range:"1 1000000000"`
}

// SignInQuota is how many wrong passwords are allowed. In addition to the quota it has limits over
// a day (SlowAfter and PerNameDaily), which count for all instances together.
type SignInQuota struct {
	FailureQuota
	PerNameDaily int64 `json:"per_name_daily" help:"from one address for one username in a day, on all instances" range:"1 1000000000"`
	// SlowAfter is a number of wrong passwords with one username, from all addresses and without a
	// correct one in between. After it, attempts from unknown addresses are slowed down to one in 30
	// seconds.
	SlowAfter int64 `json:"slow_after" help:"in a row for one username in a day, on all instances, after which new addresses are slowed down" range:"1 1000000000"`
}

// RateLimit has the limits on token requests: the default limits of all clients, and the policies
// of single clients.
type RateLimit struct {
	MaxKeys int `json:"max_keys" help:"maximum of counters in memory" range:"1 1073741824"`
	// RFC 6749 has no code for a 429. slow_down is from RFC 8628 section 3.5.
	ErrorCode string `json:"error_code" help:"OAuth error code of a 429 answer: temporarily_unavailable, slow_down, rate_limited, invalid_request" values:"temporarily_unavailable slow_down rate_limited invalid_request"`
	ratelimit.Settings
}
