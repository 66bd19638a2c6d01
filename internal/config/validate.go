package config

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/fielderr"
	"oauth-server/internal/keys"
	"oauth-server/internal/ratelimit"
)

// maxClientLabels keeps an instance well under a million series.
const maxClientLabels = 10_000

// maxPasswordConcurrency needs 19 GiB.
const maxPasswordConcurrency = 1024

// Validate reports all problems of c, as [fielderr.Errors].
func (c *Config) Validate() error { return c.check().Err() }

func (c *Config) check() (es fielderr.Errors) {
	c.checkListen(&es)
	c.checkIssuer(&es)
	c.TLS.check(&es, "tls")
	c.checkOperators(&es)
	c.checkProxies(&es)
	between(&es, "drain_delay", c.DrainDelay, 0, time.Hour)
	between(&es, "shutdown_timeout", c.ShutdownTimeout, time.Second, time.Hour)
	oneOf(&es, "log.format", c.Log.Format, "text", "json")
	oneOf(&es, "log.level", c.Log.Level, "debug", "info", "warn", "error")
	if n := c.Metrics.MaxClients; n < 0 || n > maxClientLabels {
		es.Add("metrics.max_clients", "must be from 0 to %d, not %d", maxClientLabels, n)
	}
	c.Tracing.check(&es)
	es = append(es, c.Store.check()...)
	c.Tokens.check(&es)
	c.Keys.check(&es)
	between(&es, "sessions.ttl", c.Sessions.TTL, time.Minute, 365*24*time.Hour)
	atLeastOne(&es, "sessions.codes", c.Sessions.Codes)
	if n := c.Passwords.Concurrency; n < 0 || n > maxPasswordConcurrency {
		es.Add("passwords.concurrency", "must be from 0 to %d, not %d", maxPasswordConcurrency, n)
	}
	oneOf(&es, "passwords.processes", c.Passwords.Processes, ProcessesAuto, ProcessesOff)
	atLeastOne(&es, "passwords.sign_ins_per_minute", c.Passwords.SignInsPerMinute)
	c.FailedAttempts.check(&es)
	c.Inspection.check(&es)
	between(&es, "audit.keep", c.Audit.Keep, 24*time.Hour, 100*365*24*time.Hour)
	between(&es, "sync.interval", c.Sync.Interval, 10*time.Millisecond, time.Minute)
	c.RateLimit.check(&es)
	c.Overload.check(&es)
	c.Gateway.check(&es, c.Listen)
	if c.Gateway.Judge && !c.LoopbackListen() && !c.Gateway.Insecure {
		es.Add("gateway.judge", "needs listen to be a loopback address, beside the proxy that asks: whoever can ask can use up the limits of others; insecure allows another one on a network that nobody else can reach")
	}
	return es
}

func (c *Config) checkListen(es *fielderr.Errors) {
	checkHostPort(es, "listen", c.Listen)
	if c.AdminListen == "" {
		return
	}
	checkHostPort(es, "admin_listen", c.AdminListen)
	if _, port, err := net.SplitHostPort(c.Listen); err == nil && port != "0" && c.AdminListen == c.Listen {
		es.Add("admin_listen", "must differ from listen: operators and clients do not share a door")
	}
}

func checkHostPort(es *fielderr.Errors, path, value string) {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		es.Add(path, "%q is not host:port", value)
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		es.Add(path, "%q is not a port from 0 to 65535", port)
	}
}

// LoopbackListen reports whether the server can only be reached from its own machine. Its issuer
// may then be plain HTTP, and is derived from the address if it is not configured.
func (c *Config) LoopbackListen() bool { return isLoopback(c.Listen) }

// LoopbackAdminListen reports whether the admin address can only be reached from the server's own
// machine.
func (c *Config) LoopbackAdminListen() bool { return isLoopback(c.AdminListen) }

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && clientcfg.IsLoopback(host)
}

// checkIssuer follows RFC 8414 section 2: https, no query, no fragment. Plain HTTP is
// allowed on loopback only, where no network can be tapped.
func (c *Config) checkIssuer(es *fielderr.Errors) {
	if c.Issuer == "" && c.Gateway.Enabled() { // the gateway's own tokens are only for operators, at the admin address
		return
	}
	if c.Issuer == "" {
		if _, _, err := net.SplitHostPort(c.Listen); err == nil && !c.LoopbackListen() {
			es.Add("issuer", "is required when listen is not a loopback address: the public https URL of this server")
		}
		return
	}
	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		es.Add("issuer", "%q is not a URL such as https://auth.example.com", RedactURI(c.Issuer))
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(c.Issuer, "#"):
		es.Add("issuer", "must have no user information, query or fragment (RFC 8414 section 2)")
	case strings.HasSuffix(u.Path, "/"):
		es.Add("issuer", "must not end with a slash: clients compare it letter by letter")
	case strings.ContainsAny(u.Path, ":*"):
		es.Add("issuer", "must have no : or * in its path")
	case u.Scheme != "https" && (u.Scheme != "http" || !clientcfg.IsLoopback(u.Hostname())):
		es.Add("issuer", "must be https; http is for loopback addresses only (RFC 8414 section 2)")
	}
}

// The headers that TrustedHeader can be.
const xForwardedFor, forwarded = "x-forwarded-for", "forwarded"

// The values of LogUsers: all token requests that reached the limiter, or only requests over a
// limit.
const (
	LogAllUsers    = "all"
	LogDeniedUsers = "denied"
)

// maxHops is far above any real chain of proxies.
const maxHops = 100

// checkProxies requires a setting instead of guessing whether a proxy is in front. Behind an
// untrusted proxy that terminates HTTPS for the server, every client has the proxy's address, and
// failed attempts lock out all of them.
func (c *Config) checkProxies(es *fielderr.Errors) {
	switch {
	case len(c.TrustedProxies) > 1 && slices.ContainsFunc(c.TrustedProxies, func(p Prefix) bool { return p.none }):
		es.Add("trusted_proxies", "none excludes all others")
	case len(c.TrustedProxies) == 0 && strings.HasPrefix(c.Issuer, "https:") && !c.TLS.Enabled():
		es.Add("trusted_proxies", "is required when issuer is https and tls is not set: "+
			"list the addresses of the proxy in front, since without them all clients count as one and can lock each other out; "+
			"or set it to none if that is meant")
	}
	oneOf(es, "trusted_header", c.TrustedHeader, xForwardedFor, forwarded)
	oneOf(es, "log_users", c.LogUsers, LogAllUsers, LogDeniedUsers)
	if c.TrustedHops < 1 || c.TrustedHops > maxHops {
		es.Add("trusted_hops", "must be from 1 to %d, not %d", maxHops, c.TrustedHops)
	}
}

func (t TLS) check(es *fielderr.Errors, path string) {
	switch {
	case t.CertFile == "" && t.KeyFile == "":
	case t.CertFile == "":
		es.Add(path+".cert_file", "is required with %s.key_file", path)
	case t.KeyFile == "":
		es.Add(path+".key_file", "is required with %s.cert_file", path)
	default:
		t.checkFiles(es, path)
	}
}

func (t TLS) checkFiles(es *fielderr.Errors, path string) {
	cert, noCert := os.ReadFile(t.CertFile)
	if noCert != nil {
		es.Add(path+".cert_file", "%v", noCert)
	}
	key, noKey := os.ReadFile(t.KeyFile)
	if noKey != nil {
		es.Add(path+".key_file", "%v", noKey)
	}
	if noCert != nil || noKey != nil {
		return
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		es.Add(path, "%s", strings.TrimPrefix(err.Error(), "tls: "))
	}
}

// checkOperators checks the settings of the admin address.
func (c *Config) checkOperators(es *fielderr.Errors) {
	c.AdminTLS.check(es, "admin_tls")
	if c.AdminClientCA == "" {
		return
	}
	if !c.OperatorTLS().Enabled() {
		es.Add("admin_client_ca", "needs a certificate of the server: set admin_tls or tls")
	}
	text, err := readBounded(c.AdminClientCA, maxFileSize)
	switch {
	case err != nil:
		es.Add("admin_client_ca", "%s", err)
	case !x509.NewCertPool().AppendCertsFromPEM(text):
		es.Add("admin_client_ca", "%s holds no PEM certificate", c.AdminClientCA)
	}
}

func (t Tracing) check(es *fielderr.Errors) {
	u, err := url.Parse(t.Endpoint)
	if t.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		es.Add("tracing.endpoint", "%q is not a URL such as http://127.0.0.1:4318", RedactURI(t.Endpoint))
	}
	if !(t.SampleRatio >= 0 && t.SampleRatio <= 1) { // also catches NaN
		es.Add("tracing.sample_ratio", "must be from 0 to 1, not %v", t.SampleRatio)
	}
}

func (s Store) check() (es fielderr.Errors) {
	switch {
	case s.Embedded != nil && s.MongoDB != nil:
		es.Add("store", "embedded (--data) and mongodb (--mongodb-uri) exclude each other")
	case s.Embedded != nil && s.Embedded.Path == "":
		es.Add("store.embedded.path", "must name a file")
	case s.MongoDB != nil:
		s.MongoDB.check(&es)
	}
	return es
}

func (m MongoDB) check(es *fielderr.Errors) {
	// If a file is given, an empty URI was reported when the file was read.
	if problem := uriProblem(m.URI); problem != "" && (m.URI != "" || m.URIFile == "") {
		es.Add("store.mongodb.uri", "%s", problem)
	}
	// https://www.mongodb.com/docs/manual/reference/limits/#naming-restrictions
	if m.Database == "" || len(m.Database) > 63 || strings.ContainsAny(m.Database, "/\\. \"$*<>:|?\x00") {
		es.Add("store.mongodb.database", "%q is not the name of a database", m.Database)
	}
}

func (t Tokens) check(es *fielderr.Errors) {
	const year = 365 * 24 * time.Hour
	oneOf(es, "tokens.algorithm", t.Algorithm, keys.Algorithms()...)
	between(es, "tokens.access_ttl", t.AccessTTL, time.Second, 30*24*time.Hour)
	between(es, "tokens.refresh_ttl", t.RefreshTTL, time.Second, 10*year)
	// Within the grace period a stolen token looks like a repetition.
	between(es, "tokens.refresh_grace", t.RefreshGrace, 0, 10*time.Minute)
	between(es, "tokens.refresh_max_age", t.RefreshMaxAge, time.Second, 10*year)
	// RFC 6749 4.1.2 recommends a maximum of ten minutes.
	between(es, "tokens.code_ttl", t.CodeTTL, time.Second, 10*time.Minute)
	between(es, "tokens.key_rotation", t.KeyRotation, time.Hour, 10*year)
}

func (f FailedAttempts) check(es *fielderr.Errors) {
	between(es, "failed_attempts.window", f.Window, time.Second, 24*time.Hour)
	f.Clients.check(es, "failed_attempts.clients")
	f.Users.check(es, "failed_attempts.users")
	f.Grants.check(es, "failed_attempts.grants")
}

func (i Inspection) check(es *fielderr.Errors) {
	perSecond(es, "inspection.introspect_per_second", i.IntrospectPerSecond)
	perSecond(es, "inspection.revoke_per_second", i.RevokePerSecond)
}

// perSecond leaves room for the count of ten seconds, the window of the limit.
func perSecond(es *fielderr.Errors, path string, n int64) {
	if n < 1 || n > ratelimit.MaxRequests/10 {
		es.Add(path, "must be from 1 to %d, not %d", ratelimit.MaxRequests/10, n)
	}
}

func (q FailureQuota) check(es *fielderr.Errors, path string) {
	atLeastOne(es, path+".per_address", q.PerAddress)
	atLeastOne(es, path+".per_name", q.PerName)
}

func (q SignInQuota) check(es *fielderr.Errors, path string) {
	q.FailureQuota.check(es, path)
	atLeastOne(es, path+".per_name_daily", q.PerNameDaily)
	atLeastOne(es, path+".slow_after", q.SlowAfter)
	between(es, path+".slow_wait", q.SlowWait, time.Second, time.Hour)
}

func atLeastOne(es *fielderr.Errors, path string, n int64) {
	if n < 1 || n > ratelimit.MaxRequests {
		es.Add(path, "must be from 1 to %d, not %d", ratelimit.MaxRequests, n)
	}
}

func between(es *fielderr.Errors, path string, d Duration, least, most time.Duration) {
	if d.Std() < least || d.Std() > most {
		es.Add(path, "must be from %s to %s, not %s", Duration(least), Duration(most), d)
	}
}

func oneOf[T ~string](es *fielderr.Errors, path string, value T, allowed ...T) {
	if slices.Contains(allowed, value) {
		return
	}
	quoted := make([]string, len(allowed))
	for i, a := range allowed {
		quoted[i] = strconv.Quote(string(a))
	}
	es.Add(path, "%q is none of %s", value, strings.Join(quoted, ", "))
}
