package gateway_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/gateway"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

const fixedForm = "client_id=shop&client_secret=s&grant_type=client_credentials"

// BenchmarkForward measures one token request through the gateway's handler and back, over a
// persistent connection to an upstream that costs almost nothing.
func BenchmarkForward(b *testing.B) {
	settings := ratelimit.DefaultSettings()
	settings.Default.Client = []ratelimit.Limit{ratelimit.NewLimit("ample", 1_000_000_000, time.Minute)}
	policies := testworld.Policies(b, settings, clientcfg.PolicySet{})
	g, err := gateway.New(gateway.Options{
		Upstream: &url.URL{Scheme: "http", Host: fixedUpstream(b)}, TokenPaths: []string{tokenPath},
		Limiter: limiter.New(limiter.Options{
			Counters: counting.NewCounters(0), Clock: time.Now,
			Policies: func() limiter.Policies { return policies },
		}),
		ClientAddr: func(*http.Request) (netip.Addr, bool) { return netip.MustParseAddr("192.0.2.1"), false },
	})
	check.OK(b, err)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, tokenPath, strings.NewReader(fixedForm))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatalf("status %d: %s", w.Code, w.Body)
		}
	}
}

// fixedUpstream starts an upstream that answers every request with the same token, and returns its
// address. The body of each request must be fixedForm.
func fixedUpstream(b *testing.B) string {
	b.Helper()
	const answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 66\r\n\r\n" +
		`{"access_token":"0123456789abcdef","token_type":"Bearer","e":3600}`
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(b, err)
	b.Cleanup(func() { check.OK(b, l.Close()) })
	go func() {
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				for in := bufio.NewReader(conn); ; {
					line, err := in.ReadSlice('\n')
					if err != nil {
						return
					}
					if len(line) > len("\r\n") {
						continue // still in the header
					}
					if _, err := in.Discard(len(fixedForm)); err != nil {
						return
					}
					if _, err := io.WriteString(conn, answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
