package gateway

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"oauth-server/internal/gateway/introspection"
	"oauth-server/internal/gateway/upstream"
)

// CheckNow is Check without the wait for the end, and with none for an upstream that does not answer.
func (g *Gateway) CheckNow(ctx context.Context) {
	g.checkAgain = 0
	g.check(ctx)
	g.checkIntrospection(ctx)
}

// MostIntrospections is how many questions there are at most, under way and waiting; IntrospectedAtOnce those under way.
const (
	MostIntrospections = introspectedAtOnce + introspectionsWaiting
	IntrospectedAtOnce = introspectedAtOnce
)

// IntrospectOver has users asked for over a transport.
func (g *Gateway) IntrospectOver(t http.RoundTripper) {
	client, err := introspection.New(introspection.Endpoint{URL: &url.URL{Scheme: "http", Host: "127.0.0.1"}}, t, g.reader)
	if err != nil {
		panic(err)
	}
	g.asking.client = client
}

// Trust has all but token requests trust certificates of the upstream.
func (g *Gateway) Trust(roots *x509.CertPool) {
	proxy := g.next.(*httputil.ReverseProxy)                                                 //nolint:forcetypeassert // of New
	proxy.Transport.(timed).RoundTripper.(upstream.Resender).TLSClientConfig.RootCAs = roots //nolint:forcetypeassert // of New
}

// ManyGone has as many requests go on without their clients as may.
func (g *Gateway) ManyGone() { g.gone.Add(mostGone) }

// WriteWithin sets how long a client may take to read what is written at once.
func (g *Gateway) WriteWithin(d time.Duration) { g.writeWithin = d }

// UploadGrace sets how long a body that is passed on may be waited for.
func (g *Gateway) UploadGrace(d time.Duration) { g.uploadGrace = d }

// Patience is how long to wait for the next bytes of a body.
func Patience(received int64, waited time.Duration) time.Duration {
	return patience(uploadGrace, received, waited)
}

// Serves reports whether a gateway at that URL serves a host.
func Serves(public *url.URL, host string) bool {
	o := newPublicOrigin(public)
	return o.plain(host) == o.host
}
