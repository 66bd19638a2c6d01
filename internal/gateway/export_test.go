package gateway

import (
	"context"
	"crypto/x509"
	"net/http/httputil"
	"net/url"
	"time"

	"oauth-server/internal/gateway/upstream"
)

// CheckNow is Check without waiting for the end of ctx, and without waiting between retries.
func (g *Gateway) CheckNow(ctx context.Context) {
	g.checkAgain = 0
	g.check(ctx)
	g.checkIntrospection(ctx)
}

// MostIntrospections is the maximum number of running and queued introspections. IntrospectedAtOnce
// is the maximum of running ones.
const (
	MostIntrospections = introspectedAtOnce + introspectionsWaiting
	IntrospectedAtOnce = introspectedAtOnce
)

// IntrospectWith replaces the introspection.
func (g *Gateway) IntrospectWith(client Introspection) { g.asking.client = client }

// Trust makes all requests except token requests trust these certificates of the upstream.
func (g *Gateway) Trust(roots *x509.CertPool) {
	proxy := g.next.(*httputil.ReverseProxy)                                                 //nolint:forcetypeassert // of New
	proxy.Transport.(timed).RoundTripper.(upstream.Resender).TLSClientConfig.RootCAs = roots //nolint:forcetypeassert // of New
}

// ManyGone sets the number of requests without clients to its maximum.
func (g *Gateway) ManyGone() { g.gone.Add(mostGone) }

// WriteWithin sets the deadline of each write to a client.
func (g *Gateway) WriteWithin(d time.Duration) { g.writeWithin = d }

// UploadGrace sets the grace of a forwarded body.
func (g *Gateway) UploadGrace(d time.Duration) { g.uploadGrace = d }

// Patience returns how long to wait for the next bytes of a body.
func Patience(received int64, waited time.Duration) time.Duration {
	return patience(uploadGrace, received, waited)
}

// Serves reports whether a gateway at that URL serves a host.
func Serves(public *url.URL, host string) bool {
	o := newPublicOrigin(public)
	return o.plain(host) == o.host
}
