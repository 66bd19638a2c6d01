package config

import (
	"crypto/tls"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/keys"
	"oauth-server/internal/ratelimit"
)

// maxClientLabels keeps one instance well under a million series.
const maxClientLabels = 10_000

// Validate reports everything that is wrong with c, as [FieldErrors].
func (c *Config) Validate() error { return c.check().err() }

func (c *Config) check() (ps FieldErrors) {
	c.checkListen(&ps)
	c.checkIssuer(&ps)
	c.TLS.check(&ps)
	between(&ps, "shutdown_timeout", c.ShutdownTimeout, time.Second, time.Hour)
	oneOf(&ps, "log.format", c.Log.Format, "text", "json")
	oneOf(&ps, "log.level", c.Log.Level, "debug", "info", "warn", "error")
	if n := c.Metrics.MaxClients; n < 0 || n > maxClientLabels {
		ps.addf("metrics.max_clients", "must be from 0 to %d, not %d", maxClientLabels, n)
	}
	c.Tracing.check(&ps)
	ps = append(ps, c.Store.check()...)
	c.Tokens.check(&ps)
	between(&ps, "sessions.ttl", c.Sessions.TTL, time.Minute, 365*24*time.Hour)
	c.FailedAttempts.check(&ps)
	between(&ps, "audit.keep", c.Audit.Keep, 24*time.Hour, 100*365*24*time.Hour)
	between(&ps, "sync.interval", c.Sync.Interval, 10*time.Millisecond, time.Minute)
	c.RateLimit.check(&ps)
	return ps
}

func (c *Config) checkListen(ps *FieldErrors) {
	checkHostPort(ps, "listen", c.Listen)
	if c.AdminListen == "" {
		return
	}
	checkHostPort(ps, "admin_listen", c.AdminListen)
	if _, port, err := net.SplitHostPort(c.Listen); err == nil && port != "0" && c.AdminListen == c.Listen {
		ps.addf("admin_listen", "must differ from listen: operators and clients do not share a door")
	}
}

func checkHostPort(ps *FieldErrors, path, value string) {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		ps.addf(path, "%q is not host:port", value)
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		ps.addf(path, "%q is not a port from 0 to 65535", port)
	}
}

// LoopbackListen reports whether the server can only be reached from its own
// machine, so that its issuer may be plain HTTP and need not be configured.
func (c *Config) LoopbackListen() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	return err == nil && clientcfg.IsLoopback(host)
}

// checkIssuer follows RFC 8414 section 2: https, no query, no fragment. Plain
// HTTP is for loopback only, where there is no network to listen on.
func (c *Config) checkIssuer(ps *FieldErrors) {
	if c.Issuer == "" {
		if _, _, err := net.SplitHostPort(c.Listen); err == nil && !c.LoopbackListen() {
			ps.addf("issuer", "is required when listen is not a loopback address: the public https URL of this server")
		}
		return
	}
	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		ps.addf("issuer", "%q is not a URL such as https://auth.example.com", c.Issuer)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(c.Issuer, "#"):
		ps.addf("issuer", "must have no user information, query or fragment (RFC 8414 section 2)")
	case strings.HasSuffix(u.Path, "/"):
		ps.addf("issuer", "must not end with a slash: clients compare it letter by letter")
	case strings.ContainsAny(u.Path, ":*"):
		ps.addf("issuer", "must have no : or * in its path")
	case u.Scheme != "https" && (u.Scheme != "http" || !clientcfg.IsLoopback(u.Hostname())):
		ps.addf("issuer", "must be https; http is for loopback addresses only (RFC 8414 section 2)")
	}
}

func (t TLS) check(ps *FieldErrors) {
	switch {
	case t.CertFile == "" && t.KeyFile == "":
	case t.CertFile == "":
		ps.addf("tls.cert_file", "is required with tls.key_file")
	case t.KeyFile == "":
		ps.addf("tls.key_file", "is required with tls.cert_file")
	default:
		if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
			ps.addf("tls", "%s", strings.TrimPrefix(err.Error(), "tls: "))
		}
	}
}

func (t Tracing) check(ps *FieldErrors) {
	u, err := url.Parse(t.Endpoint)
	if t.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		ps.addf("tracing.endpoint", "%q is not a URL such as http://127.0.0.1:4318", t.Endpoint)
	}
	if !(t.SampleRatio >= 0 && t.SampleRatio <= 1) { // also catches NaN
		ps.addf("tracing.sample_ratio", "must be from 0 to 1, not %v", t.SampleRatio)
	}
}

func (s Store) check() (ps FieldErrors) {
	switch {
	case s.Embedded != nil && s.MongoDB != nil:
		ps.addf("store", "embedded (--data) and mongodb (--mongodb-uri) exclude each other")
	case s.Embedded != nil && s.Embedded.Path == "":
		ps.addf("store.embedded.path", "must name a file")
	case s.MongoDB != nil:
		s.MongoDB.check(&ps)
	}
	return ps
}

func (m MongoDB) check(ps *FieldErrors) {
	switch {
	case m.URI == "":
		ps.addf("store.mongodb.uri", "is required, such as mongodb://localhost:27017")
	case !strings.HasPrefix(m.URI, "mongodb://") && !strings.HasPrefix(m.URI, "mongodb+srv://"):
		ps.addf("store.mongodb.uri", "must begin with mongodb:// or mongodb+srv://")
	}
	// https://www.mongodb.com/docs/manual/reference/limits/#naming-restrictions
	if m.Database == "" || len(m.Database) > 63 || strings.ContainsAny(m.Database, "/\\. \"$*<>:|?\x00") {
		ps.addf("store.mongodb.database", "%q is not the name of a database", m.Database)
	}
}

func (t Tokens) check(ps *FieldErrors) {
	const year = 365 * 24 * time.Hour
	oneOf(ps, "tokens.algorithm", t.Algorithm, keys.Algorithms()...)
	between(ps, "tokens.access_ttl", t.AccessTTL, time.Second, 30*24*time.Hour)
	between(ps, "tokens.refresh_ttl", t.RefreshTTL, time.Second, 10*year)
	// RFC 6749 4.1.2 recommends ten minutes at the most.
	between(ps, "tokens.code_ttl", t.CodeTTL, time.Second, 10*time.Minute)
	between(ps, "tokens.key_rotation", t.KeyRotation, time.Hour, 10*year)
}

func (f FailedAttempts) check(ps *FieldErrors) {
	between(ps, "failed_attempts.window", f.Window, time.Second, 24*time.Hour)
	f.Clients.check(ps, "failed_attempts.clients")
	f.Users.check(ps, "failed_attempts.users")
}

func (q FailureQuota) check(ps *FieldErrors, path string) {
	atLeastOne(ps, path+".per_address", q.PerAddress)
	atLeastOne(ps, path+".per_name", q.PerName)
}

func atLeastOne(ps *FieldErrors, path string, n int64) {
	if n < 1 || n > ratelimit.MaxRequests {
		ps.addf(path, "must be from 1 to %d, not %d", ratelimit.MaxRequests, n)
	}
}

func between(ps *FieldErrors, path string, d Duration, least, most time.Duration) {
	if d.Std() < least || d.Std() > most {
		ps.addf(path, "must be from %s to %s, not %s", Duration(least), Duration(most), d)
	}
}

func oneOf[T ~string](ps *FieldErrors, path string, value T, allowed ...T) {
	if slices.Contains(allowed, value) {
		return
	}
	quoted := make([]string, len(allowed))
	for i, a := range allowed {
		quoted[i] = strconv.Quote(string(a))
	}
	ps.addf(path, "%q is none of %s", value, strings.Join(quoted, ", "))
}
