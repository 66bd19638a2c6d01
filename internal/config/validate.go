package config

import (
	"crypto/tls"
	"crypto/x509"
	"math"
	"net"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/clientcfg/redirecturi"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// Validate reports all problems of c, as [fielderr.Errors].
func (c *Config) Validate() error { return c.check().Err() }

func (c *Config) check() (es fielderr.Errors) {
	c.checkListen(&es)
	c.checkIssuer(&es)
	c.TLS.check(&es, "tls")
	c.checkOperators(&es)
	c.checkProxies(&es)
	c.Tracing.check(&es)
	es = append(es, c.Store.check()...)
	c.Keys.check(&es)
	c.checkOptions(&es, "")
	c.RateLimit.check(&es)
	c.Gateway.check(&es, c.Listen)
	if c.Gateway.Judge && !c.LoopbackListen() && !c.Gateway.Insecure {
		es.Add("gateway.judge", "needs listen to be a loopback address, because anyone who can reach it can use up limits; on a private network, set insecure to allow another address")
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
		es.Add("admin_listen", "must differ from listen")
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
	return err == nil && redirecturi.IsLoopback(host)
}

// checkIssuer follows RFC 8414 section 2: https, no query, no fragment. Plain HTTP is
// allowed on loopback only, where no network can be tapped.
func (c *Config) checkIssuer(es *fielderr.Errors) {
	if c.Issuer == "" && c.Gateway.Enabled() { // the gateway's own tokens are only for operators, at the admin address
		return
	}
	if c.Issuer == "" {
		if _, _, err := net.SplitHostPort(c.Listen); err == nil && !c.LoopbackListen() {
			es.Add("issuer", "is required unless listen is a loopback address: give the public https URL of this server")
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
		es.Add("issuer", "must not end with a slash, because clients compare it literally")
	case strings.ContainsAny(u.Path, ":*"):
		es.Add("issuer", "must have no : or * in its path")
	case u.Path != u.EscapedPath() || u.Path != "" && u.Path != path.Clean(u.Path):
		es.Add("issuer", "must have a path without empty or dot segments and without escaped characters")
	case u.Scheme != "https" && (u.Scheme != "http" || !redirecturi.IsLoopback(u.Hostname())):
		es.Add("issuer", "must be https unless it is a loopback address (RFC 8414 section 2)")
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

// checkProxies requires a setting instead of guessing whether a proxy is in front. Behind an
// untrusted proxy that terminates HTTPS for the server, every client has the proxy's address, and
// failed attempts lock out all of them.
func (c *Config) checkProxies(es *fielderr.Errors) {
	switch {
	case len(c.TrustedProxies) > 1 && slices.ContainsFunc(c.TrustedProxies, func(p Prefix) bool { return p.none }):
		es.Add("trusted_proxies", "none must be the only value")
	case len(c.TrustedProxies) == 0 && strings.HasPrefix(c.Issuer, "https:") && !c.TLS.Enabled():
		es.Add("trusted_proxies", "is required because issuer is https and tls is not set: "+
			"list the addresses of your proxy, or all clients count as one address; set it to none if there is no proxy")
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
		es.Add(path, "%s and %s: %s", t.CertFile, t.KeyFile, strings.TrimPrefix(err.Error(), "tls: "))
	}
}

// checkOperators checks the settings of the admin address.
func (c *Config) checkOperators(es *fielderr.Errors) {
	c.AdminTLS.check(es, "admin_tls")
	if c.AdminClientCA == "" {
		return
	}
	if !c.OperatorTLS().Enabled() {
		es.Add("admin_client_ca", "needs a server certificate: set admin_tls or tls")
	}
	text, err := readBounded(c.AdminClientCA, maxFileSize)
	switch {
	case err != nil:
		es.Add("admin_client_ca", "%s", err)
	case !x509.NewCertPool().AppendCertsFromPEM(text):
		es.Add("admin_client_ca", "%s contains no PEM certificate", c.AdminClientCA)
	}
}

func (t Tracing) check(es *fielderr.Errors) {
	u, err := url.Parse(t.Endpoint)
	if t.Endpoint != "" && (err != nil || !redirecturi.IsHTTP(u)) {
		es.Add("tracing.endpoint", "%q is not a URL such as http://127.0.0.1:4318", RedactURI(t.Endpoint))
	}
}

func (s Store) check() (es fielderr.Errors) {
	switch {
	case s.Embedded != nil && s.MongoDB != nil:
		es.Add("store", "embedded (--data) and mongodb (--mongodb-uri) cannot be used together")
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

// checkOptions checks the range and values tags of the options with a path that begins with prefix.
func (c *Config) checkOptions(es *fielderr.Errors, prefix string) {
	shown := *c // At allocates on the way
	for _, o := range options {
		if !strings.HasPrefix(o.Path, prefix) {
			continue
		}
		v, err := strict.At(&shown, o.Path)
		if err != nil {
			es.Add(o.Path, "%v", err)
			continue
		}
		if values := o.Values(); values != nil && !slices.Contains(values, v.String()) {
			es.Add(o.Path, "%q is not one of %s", v, `"`+strings.Join(values, `", "`)+`"`)
		}
		if least, most, bounded := strings.Cut(o.bounds, " "); bounded && !(number(v.Interface()) >= bound(least) && number(v.Interface()) <= bound(most)) { // also catches NaN
			es.Add(o.Path, "must be from %s to %s, not %v", least, most, v)
		}
	}
}

// bound returns a bound of a range tag: a number, or a duration in nanoseconds.
func bound(text string) float64 {
	if d, err := time.ParseDuration(text); err == nil {
		return float64(d)
	}
	f, _ := strconv.ParseFloat(text, 64) // a test reads every tag
	return f
}

// number returns the value of an option with a range.
func number(v any) float64 {
	switch v := v.(type) {
	case Duration:
		return float64(v)
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return math.NaN()
}
