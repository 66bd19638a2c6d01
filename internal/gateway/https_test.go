package gateway_test

import (
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
)

// TestUpstreamWithHTTP2 checks that the gateway offers only HTTP/1.1, because an https upstream
// uses the first protocol that is offered.
func TestUpstreamWithHTTP2(t *testing.T) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	up.EnableHTTP2 = true
	up.StartTLS()
	defer up.Close()
	w := newWorld(t, 1, func(o *gateway.Options) {
		var err error
		o.Upstream, err = url.Parse(up.URL)
		check.OK(t, err)
	})
	roots := x509.NewCertPool()
	roots.AddCert(up.Certificate())
	w.Trust(roots)
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/.well-known/openid-configuration", nil))
	check.Equal(t, "status", rec.Code, 200)
	check.Equal(t, "protocol", rec.Body.String(), "HTTP/1.1")
}
