package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestNoOtherProtocol checks that a connection cannot become HTTP/2, because its token requests
// would bypass the gateway. WebSockets pass.
func TestNoOtherProtocol(t *testing.T) {
	for protocol, want := range map[string]int{
		"h2c": http.StatusOK, "H2C": http.StatusOK, "h2c, websocket": http.StatusOK, "TLS/1.2": http.StatusOK,
		"websocket": http.StatusSwitchingProtocols, "WebSocket": http.StatusSwitchingProtocols,
	} {
		t.Run(protocol, func(t *testing.T) {
			w := newWorld(t, 1)
			w.upstream(func(rw http.ResponseWriter, r *http.Request) {
				asked := r.Header.Get("Upgrade")
				if asked == "" {
					return
				}
				rw.Header().Set("Connection", "Upgrade")
				rw.Header().Set("Upgrade", asked)
				rw.WriteHeader(http.StatusSwitchingProtocols)
				c, _, err := http.NewResponseController(rw).Hijack()
				if err == nil {
					_ = c.Close()
				}
			})
			check.Equal(t, "status", w.raw("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: "+protocol+
				"\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"), want)
		})
	}
}

// TestOpaqueTargets covers opaque targets. The part that would be sent on is itself a URL with a
// host and a path.
func TestOpaqueTargets(t *testing.T) {
	const form = "client_id=shop&grant_type=client_credentials"
	w := newWorld(t, 1)
	w.upstream(issues("ada", ""))
	for _, target := range []string{"x:http://h" + tokenPath, "http:x://h" + tokenPath, "x:y:" + tokenPath, "x:y:/" + tokenPath, "x:http://h/login"} {
		check.Equal(t, target, w.raw("POST "+target+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
			"Content-Length: "+strconv.Itoa(len(form))+"\r\n\r\n"+form), http.StatusBadRequest)
	}
	w.wantCame(0)
}

// TestSpacesInTargets checks that nothing is sent for a target with a space, which HTTP/2 allows. The
// upstream could read a shorter target.
func TestSpacesInTargets(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(issues("shop", ""))
	s := httptest.NewUnstartedServer(w.Gateway)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for _, path := range []string{tokenPath, "/userinfo"} {
		for query, want := range map[string]int{"x": 200, "x HTTP/1.1": 400} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(fixedForm))
			check.OK(t, err)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.URL.RawQuery = query
			res, err := s.Client().Do(req)
			check.OK(t, err)
			check.OK(t, res.Body.Close())
			check.Equal(t, "protocol", res.ProtoMajor, 2)
			check.Equal(t, path+"?"+query, res.StatusCode, want)
		}
	}
}

// TestNoContentOverHTTP2 checks that an answer without a body passes over HTTP/2.
func TestNoContentOverHTTP2(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) })
	s := httptest.NewUnstartedServer(w.Gateway)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	res, err := s.Client().Post(s.URL+tokenPath, "application/x-www-form-urlencoded", strings.NewReader(fixedForm))
	check.OK(t, err)
	check.OK(t, res.Body.Close())
	check.Equal(t, "protocol", res.ProtoMajor, 2)
	check.Equal(t, "status", res.StatusCode, http.StatusNoContent)
}
