package httpapi_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/httpapi/early"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
)

// refusedEarly returns a request of shop with these fields, refused with a body of 40 bytes.
func refusedEarly(fields string) *early.Refusal {
	const body = "grant_type=client_credentials"
	return &early.Refusal{
		Request:  early.Request{ClientID: "shop", Secret: secretOf, Grant: "client_credentials"},
		Raw:      fmt.Appendf(nil, "POST /token HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", fields, len(body), body),
		Remote:   &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711},
		Received: time.Now(), Sent: 40,
	}
}

// A request that was refused before net/http read it has the same log line and metrics as one that
// was refused later.
func TestRefusedEarly(t *testing.T) {
	for name, tt := range map[string]struct{ fields, line string }{
		"from the peer":        {"X-Forwarded-For: 198.51.100.7\r\nX-Request-Id: abc\r\n", "remote=192.0.2.1 grant_type=client_credentials client_id=shop error=temporarily_unavailable shed=processor request_id="},
		"through a proxy":      {"X-Forwarded-For: 198.51.100.7\r\nX-Request-Id: abc\r\n", "remote=198.51.100.7 grant_type=client_credentials client_id=shop error=temporarily_unavailable shed=processor request_id=abc\n"},
		"unfit for net/http":   {"a b: c\r\n", "remote=192.0.2.1 grant_type=client_credentials client_id=shop error=temporarily_unavailable shed=processor request_id="},
		"with a secret in it":  {"Authorization: Basic " + secretOf + "\r\n", " shed=processor "},
		"below the issuer's /": {"", " path=/oauth/token status=503 bytes=40 duration_ms=0 "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, log, answers := reporting(t, newFake(), func(o *httpapi.Options) {
					if name == "through a proxy" {
						trusting("192.0.2.0/24")(o)
					}
					o.Issuer = "https://as.example/oauth"
				})
				s.RefusedEarly(refusedEarly(tt.fields))
				if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=INFO msg=request method=POST ") || !strings.Contains(got, tt.line) || strings.Contains(got, secretOf) {
					t.Errorf("log %q, want %q and no secret", got, tt.line)
				}
				check.Equal(t, "answers", *answers, []httpapi.Answer{{
					Route: "/token", Method: "POST", Status: 503, GrantType: "client_credentials", Error: string(oautherr.TemporarilyUnavailable), Shed: overload.Processor,
				}})
			})
		})
	}
}

// Early refusals share the ten log lines a second with other refusals, and all are in the metrics.
func TestRefusedEarlyFloodIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.failToken = shed(overload.Processor)
		s, log, answers := reporting(t, f, nil)
		for range 50 {
			request{path: "/token", body: form("grant_type", "client_credentials", "client_id", "shop", "client_secret", secretOf)}.send(t, s)
			s.RefusedEarly(refusedEarly(""))
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // simulated
		synctest.Wait()
		check.Equal(t, "lines", strings.Count(log.String(), "msg=request "), 10)
		check.Equal(t, "the number of all", strings.Contains(log.String(), "count=100 skipped=90\n"), true)
		check.Equal(t, "answered", len(*answers), 100)
	})
}
