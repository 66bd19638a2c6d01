package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"oauth-server/internal/strict"
)

// Option is a setting that can be given as a flag and as an environment variable.
type Option struct {
	Name  string // of the flag, without the dashes
	Path  string // of the field
	Usage string
}

// Env is the environment variable of the option.
func (o Option) Env() string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(o.Name, "-", "_"))
}

// IsStore reports whether the option chooses the store. Every command that uses a store
// has these options.
func (o Option) IsStore() bool { return strings.HasPrefix(o.Path, "store.") }

// IsGateway reports whether the option concerns the server behind the gateway. Only the command
// gateway has these options.
func (o Option) IsGateway() bool { return strings.HasPrefix(o.Path, "gateway.") }

// IsOwn reports whether the option concerns tokens and sign-ins of this server itself. At a gateway
// only operators use them, at the admin address.
func (o Option) IsOwn() bool {
	return slices.ContainsFunc([]string{"tokens.", "sessions.", "passwords.", "failed_attempts.", "inspection."}, func(section string) bool {
		return strings.HasPrefix(o.Path, section)
	})
}

// IsKeys reports whether the option concerns the signing keys. Commands that write keys have these
// options.
func (o Option) IsKeys() bool { return strings.HasPrefix(o.Path, "keys.") }

// Kind is the type of the option's value, for a help text: bool, int, float, duration,
// string or strings.
func (o Option) Kind() string {
	v, err := strict.At(&Config{}, o.Path)
	if err != nil {
		return "string"
	}
	switch {
	case v.Type() == reflect.TypeFor[Duration]():
		return "duration"
	case v.Kind() == reflect.Slice:
		return "strings"
	case v.Kind() == reflect.Float64:
		return "float"
	case v.Kind() == reflect.Bool:
		return "bool"
	case v.Kind() == reflect.Int, v.Kind() == reflect.Int64:
		return "int"
	}
	return "string"
}

// Default returns the value of an option that is not given, as text. It is empty for a zero value.
func (o Option) Default() string {
	c := Default()
	if o.Path == "store.mongodb.database" {
		return DefaultDatabase // Default() has no MongoDB
	}
	v, err := strict.At(c, o.Path)
	if err != nil || v.IsZero() {
		return ""
	}
	return fmt.Sprint(v.Interface())
}

// Options lists every option, in the order of a help text.
func Options() []Option { return slices.Clone(options) }

var options = []Option{
	{"listen", "listen", "host:port to serve clients on; port 0 takes a free one"},
	{"admin-listen", "admin_listen", "host:port of metrics, health and the admin API; empty for none"},
	{"issuer", "issuer", "public URL of the server; derived from a loopback --listen if empty"},
	{"data", "store.embedded.path", "file of the embedded store"},
	{"mongodb-uri", "store.mongodb.uri", "MongoDB to keep everything in, instead of --data"},
	{"mongodb-uri-file", "store.mongodb.uri_file", "file that holds the URI, in place of --mongodb-uri"},
	{"mongodb-database", "store.mongodb.database", "database in that MongoDB"},
	{"migrate", "migrate", "bring the MongoDB database to the layout of this release before serving"},
	{"tls-cert-file", "tls.cert_file", "PEM file of the certificate chain; makes the server speak HTTPS"},
	{"tls-key-file", "tls.key_file", "PEM file of the private key"},
	{"admin-tls-cert-file", "admin_tls.cert_file", "PEM file of the certificate chain of the admin address; that of tls if empty"},
	{"admin-tls-key-file", "admin_tls.key_file", "PEM file of its private key"},
	{"admin-client-ca", "admin_client_ca", "PEM file of the CA whose client certificates the admin address requires; empty for none"},
	{"trusted-proxies", "trusted_proxies", "addresses and ranges of the proxies that name the client; none if there are none"},
	{"trusted-header", "trusted_header", "where they name it: x-forwarded-for, or forwarded (RFC 7239)"},
	{"trusted-hops", "trusted_hops", "how many of them a request passes at most, one behind the other"},
	{"drain-delay", "drain_delay", "how long after SIGTERM requests are still taken while /readyz fails; 0s for not at all"},
	{"shutdown-timeout", "shutdown_timeout", "longest time that a graceful stop may take, after drain_delay"},
	{"log-format", "log.format", "text or json"},
	{"log-level", "log.level", "debug, info, warn or error"},
	{"log-users", "log_users", "token requests whose user is in the log: all, or denied (those over a limit)"},
	{"log-usernames", "log_usernames", "name these users in the log, instead of by a keyed hash"},
	{"metrics-max-clients", "metrics.max_clients", "clients that have series of their own in /metrics; the others share one"},
	{"tracing-endpoint", "tracing.endpoint", "URL of an OTLP/HTTP collector to send traces to; empty for none"},
	{"tracing-sample-ratio", "tracing.sample_ratio", "share of requests that are traced, 0 to 1"},
	{"tokens-algorithm", "tokens.algorithm", "signature of access tokens: ES256, EdDSA or RS256"},
	{"tokens-access-ttl", "tokens.access_ttl", "lifetime of an access token"},
	{"tokens-refresh-ttl", "tokens.refresh_ttl", "lifetime of a refresh token"},
	{"tokens-refresh-grace", "tokens.refresh_grace", "how long a repeated refresh gets the same answer again; 0s for never"},
	{"tokens-refresh-max-age", "tokens.refresh_max_age", "age of a sign-in at which refreshing ends"},
	{"tokens-code-ttl", "tokens.code_ttl", "lifetime of an authorization code; keep it above the windows of user limits"},
	{"tokens-key-rotation", "tokens.key_rotation", "age at which the signing key is replaced"},
	{"keys-secret", "keys.secret", "encrypts the signing keys in the store: base64 of at least 32 random bytes; a second one after a comma only decrypts"},
	{"keys-secret-file", "keys.secret_file", "file with that secret, instead of its value"},
	{"sessions-ttl", "sessions.ttl", "how long a browser stays signed in"},
	{"sessions-codes", "sessions.codes", "authorization codes of one session within tokens.code_ttl, in each process"},
	{"passwords-concurrency", "passwords.concurrency", "passwords checked at once, with 19 MiB each; derived from processors and memory if empty"},
	{"passwords-processes", "passwords.processes", "hash in processes of the lowest priority where that helps: auto; or never: off"},
	{"passwords-sign-ins-per-minute", "passwords.sign_ins_per_minute", "right passwords for one username from one address"},
	{"failed-attempts-window", "failed_attempts.window", "window of the six other limits on failed attempts"},
	{"failed-attempts-clients-per-address", "failed_attempts.clients.per_address", "wrong client secrets from one address"},
	{"failed-attempts-clients-per-name", "failed_attempts.clients.per_name", "wrong client secrets from one address for one client_id"},
	{"failed-attempts-users-per-address", "failed_attempts.users.per_address", "wrong passwords from one address"},
	{"failed-attempts-users-per-name", "failed_attempts.users.per_name", "wrong passwords from one address for one username"},
	{"failed-attempts-users-per-name-daily", "failed_attempts.users.per_name_daily", "wrong passwords from one address for one username in a day, on all instances"},
	{"failed-attempts-users-slow-after", "failed_attempts.users.slow_after", "wrong passwords in a row for one username in a day, on all instances, that slow down attempts from new addresses"},
	{"failed-attempts-users-slow-wait", "failed_attempts.users.slow_wait", "time between attempts that are slowed down"},
	{"failed-attempts-grants-per-address", "failed_attempts.grants.per_address", "invalid codes and refresh tokens of public clients from one address"},
	{"failed-attempts-grants-per-name", "failed_attempts.grants.per_name", "invalid codes and refresh tokens of one public client from one address"},
	{"inspection-introspect-per-second", "inspection.introspect_per_second", "requests of one client to /introspect, in each process"},
	{"inspection-revoke-per-second", "inspection.revoke_per_second", "requests of one client to /revoke, in each process"},
	{"audit-keep", "audit.keep", "how long the trail of operators' changes is kept"},
	{"sync-interval", "sync.interval", "how long counts wait to be shared with other instances; less near a limit, ten times as long far below it"},
	{"rate-limit-mode", "rate_limit.mode", "enforce, dry_run or off"},
	{"rate-limit-instance-mode", "rate_limit.instance_mode", "mode of this process alone, which overrides every other mode"},
	{"rate-limit-max-keys", "rate_limit.max_keys", "counters kept in memory"},
	{"rate-limit-canary-percent", "rate_limit.canary_percent", "share of clients that enforce applies to"},
	{"rate-limit-error-code", "rate_limit.error_code", "OAuth error code of a 429: " + strings.Join(ErrorCodes, ", ")},
	{"overload-mode", "overload.mode", "refuse the least critical requests while overloaded: enforce, dry_run or off"},
	{"overload-target", "overload.target", "how long work may wait for the processor before something is refused"},
	{"overload-max-in-flight", "overload.max_in_flight", "requests that are worked on at once, at most"},
	{"upstream", "gateway.upstream", "URL of the authorization server behind the gateway, without a path"},
	{"public-url", "gateway.public_url", "URL at which clients reach the gateway, without a path; the upstream sees no other host"},
	{"token-path", "gateway.token_path", "path of its token endpoint, repeatable; a segment * stands for any one, a first segment ** for any number"},
	{"insecure", "gateway.insecure", "allow plain HTTP beyond this machine: to the upstream, or from a proxy that asks"},
	{"subject-claim", "gateway.subject_claim", "claim that names the user in the upstream's tokens"},
	{"introspection-url", "gateway.introspection.url", "URL at which users of opaque tokens are asked for (RFC 7662); empty for none"},
	{"introspection-client-id", "gateway.introspection.client_id", "client_id of the gateway there; empty for no credentials"},
	{"introspection-client-secret", "gateway.introspection.client_secret", "its secret"},
	{"introspection-client-secret-file", "gateway.introspection.client_secret_file", "file with that secret, instead of its value"},
	{"on-error", "gateway.on_error", "what becomes of a request that the gateway itself fails to judge: allow or deny"},
	{"max-subjects", "gateway.max_subjects", "refresh tokens and usernames that are known by their user, at most"},
	{"share-subjects", "gateway.share_subjects", "keep the users of refresh tokens in the store, for other instances and the next start"},
	{"judge", "gateway.judge", "answer the questions of another proxy at /judge, instead of being one before --upstream"},
	{"envoy-listen", "gateway.envoy_listen", "address for Envoy's questions over gRPC, with --judge; empty: none"},
}

func optionByName(name string) (Option, bool) {
	i := slices.IndexFunc(options, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return Option{}, false
	}
	return options[i], true
}
