package httpapi_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/httpapi"
)

// TestMetadataForOperators checks that the metadata name the requested address, unless it is the
// issuer's.
func TestMetadataForOperators(t *testing.T) {
	s := newServer(t, newFake(), func(o *httpapi.Options) { o.Issuer = "https://auth.example/idp" })
	for _, tt := range []struct {
		host          string
		tls           bool
		status        int
		issuer, token string
	}{
		{"127.0.0.1:9097", false, 200, "http://127.0.0.1:9097", "http://127.0.0.1:9097/token"},
		{"[::1]:9097", false, 200, "http://[::1]:9097", "http://[::1]:9097/token"},
		{"admin.example", true, 200, "https://admin.example", "https://admin.example/token"},
		{"auth.example", false, 200, "https://auth.example/idp", "https://auth.example/idp/token"},
		{"auth.example:9097", true, 200, "https://auth.example:9097", "https://auth.example:9097/token"},
		{"", false, 400, "", ""},
		{"evil.example/x", false, 400, "", ""},
		{"user@evil.example", false, 400, "", ""},
		{"evil.example?x", false, 400, "", ""},
		{"a b", false, 400, "", ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/.well-known/oauth-authorization-server", http.NoBody)
		if r.Host = tt.host; tt.tls {
			r.TLS = &tls.ConnectionState{}
		}
		w := httptest.NewRecorder()
		s.Operators().ServeHTTP(w, r)
		check.Equal(t, tt.host+": status", w.Code, tt.status)
		if tt.status != http.StatusOK {
			continue
		}
		var m struct {
			Issuer        string `json:"issuer"`
			TokenEndpoint string `json:"token_endpoint"`
		}
		check.OK(t, json.Unmarshal(w.Body.Bytes(), &m))
		check.Equal(t, tt.host+": issuer", m.Issuer, tt.issuer)
		check.Equal(t, tt.host+": token_endpoint", m.TokenEndpoint, tt.token)
	}
}

// TestForeignPagesForOperators checks that a page of another origin gets no answer, not even a
// readable refusal.
func TestForeignPagesForOperators(t *testing.T) {
	s := newServer(t, newFake(), func(o *httpapi.Options) { o.Issuer = "https://auth.example" })
	for origin, want := range map[string]int{
		"": 400, "http://admin.example": 400, "https://auth.example": 400, "https://evil.example": 403, "null": 403, "http://admin.example:81": 403,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://admin.example/token", http.NoBody)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		s.Operators().ServeHTTP(w, r)
		check.Equal(t, origin, w.Code, want)
		if want == http.StatusForbidden {
			check.Equal(t, "CORS", w.Header().Get("Access-Control-Allow-Origin"), "")
		}
	}
}

// TestForwardedHeadersForOperators checks that forwarded headers are ignored, so a client has only
// one address there.
func TestForwardedHeadersForOperators(t *testing.T) {
	for _, header := range []string{httpapi.XForwardedFor, httpapi.Forwarded} {
		var log bytes.Buffer
		s := newServer(t, newFake(), func(o *httpapi.Options) {
			trusting("192.0.2.0/24")(o)
			o.TrustedHeader, o.Logger = header, slog.New(slog.NewJSONHandler(&log, nil))
		})
		for want, handler := range map[string]http.Handler{"198.51.100.1": s, "192.0.2.7": s.Operators()} {
			log.Reset()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/token", http.NoBody)
			r.RemoteAddr = "192.0.2.7:1"
			r.Header.Set(header, map[string]string{httpapi.XForwardedFor: "198.51.100.1", httpapi.Forwarded: "for=198.51.100.1"}[header])
			handler.ServeHTTP(httptest.NewRecorder(), r)
			var line map[string]any
			check.OK(t, json.Unmarshal(log.Bytes(), &line))
			check.Equal[any](t, header, line["remote"], want)
		}
	}
}
