package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
)

// TestFieldsOfTheHop checks that hop-by-hop fields are removed in both directions, that everything
// else arrives, and that the gateway ignores what a client says about its route.
func TestFieldsOfTheHop(t *testing.T) {
	w := newWorld(t, 1)
	var got http.Header
	var host string
	w.upstream(func(rw http.ResponseWriter, r *http.Request) {
		got, host = r.Header, r.Host
		for name, value := range map[string]string{
			"Connection": "X-Hop", "X-Hop": "1", "Keep-Alive": "timeout=5", "Proxy-Authenticate": "Basic", "Set-Cookie": "a=b", "X-End": "2",
		} {
			rw.Header().Set(name, value)
		}
		issues("shop", "")(rw, r)
	})
	answered := w.do(http.MethodPost, tokenPath+"?tenant=a", strings.NewReader("client_id=shop&grant_type=client_credentials"), map[string]string{
		"Connection": "X-Own", "X-Own": "1", "Te": "trailers", "Upgrade": "h2c",
		"Proxy-Authorization": "Basic YTpi", "Expect": "100-continue", "Forwarded": "for=198.51.100.7", "X-Forwarded-For": "198.51.100.7",
		"X-Forwarded-Port": "666", "X-Forwarded-Prefix": "/evil", "X-Real-Ip": "198.51.100.7", "X_Forwarded_For": "198.51.100.7",
		"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "Dpop": "proof", "User-Agent": "",
		"Accept-Encoding": "gzip",
	})
	check.Equal(t, "status", answered.status, 200)
	for name, want := range map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Dpop": "proof", "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "",
		"X-Forwarded-Host": "", "X-Own": "", "Te": "", "Upgrade": "", "Proxy-Authorization": "",
		"X-Forwarded-Port": "", "X-Forwarded-Prefix": "", "X-Real-Ip": "192.0.2.1", "X_Forwarded_For": "", "Expect": "", "Forwarded": "", "User-Agent": "", "Accept-Encoding": "", "Connection": "",
	} {
		check.Equal(t, "at the upstream "+name, strings.Join(got.Values(name), "|"), want)
	}
	check.Equal(t, "Host", host, w.upstreamHost)
	for name, want := range map[string]string{"X-Hop": "", "Keep-Alive": "", "Proxy-Authenticate": "", "Set-Cookie": "a=b", "X-End": "2"} {
		check.Equal(t, "at the client "+name, answered.header.Get(name), want)
	}
}

// TestNoBody checks that a request without a body has none at the upstream, and says so.
func TestNoBody(t *testing.T) {
	w := newWorld(t, 1)
	var length string
	w.upstream(func(rw http.ResponseWriter, r *http.Request) {
		length = strings.Join(append(r.TransferEncoding, r.Header["Content-Length"]...), ", ")
		issues("shop", "")(rw, r)
	})
	w.do(http.MethodPost, tokenPath, http.NoBody, nil)
	check.Equal(t, "length of the body", length, "0")
}

// TestBrokenAfterTheStart checks that the client sees that an answer broke off, if the answer is
// too large to be read first.
func TestBrokenAfterTheStart(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "4000000")
		_, _ = io.WriteString(rw, `{"access_token":"`+strings.Repeat("x", 2<<20))
	})
	res, err := http.DefaultClient.Do(w.request(t.Context(), http.MethodPost, tokenPath, strings.NewReader("client_id=shop&grant_type=client_credentials")))
	check.OK(t, err)
	check.Equal(t, "status", res.StatusCode, 200)
	_, err = io.Copy(io.Discard, res.Body)
	check.ErrorSays(t, err, "EOF")
	check.OK(t, res.Body.Close())
	check.Eventually(t, "it is settled once", func() bool { return w.Stats().Requests[gateway.Issued] == 1 && w.Stats().UnderWay == 0 })
}

// TestMethodsOfOtherProtocols checks that requests that would open a tunnel or start HTTP/2 end at
// the gateway.
func TestMethodsOfOtherProtocols(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(fails)
	for _, line := range []string{"CONNECT idp.example:443", "PRI *"} {
		check.Equal(t, line, w.raw(line+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), http.StatusMethodNotAllowed)
	}
	w.wantCame(0)
}
