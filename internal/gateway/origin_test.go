package gateway_test

import (
	"bufio"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
	"oauth-server/internal/httpapi"
)

// forgedOrigin are fields about the origin of a request, as some server reads them. A client must
// not be able to set them.
var forgedOrigin = []string{
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server",
	"X-Forwarded-Ssl", "X-Forwarded-Scheme", "X-Forwarded-User", "X-Forwarded-By", "X-Forwarded-Client-Cert", "X-Forwarded-Uri", "X-Forwarded",
	"Forwarded-For", "X_Forwarded_For", "X_Forwarded_Host", "x-forwarded_host", "X.Forwarded.Host", "X~Forwarded~Proto", "X-Real-Ip", "X_Real_IP",
	"X-Original-Url", "X-Original-Host", "X-Original-Uri", "X-Original-Forwarded-For", "X_Original_URL", "X-Rewrite-Url", "X-Host", "X-Http-Host-Override",
	"True-Client-Ip", "Cf-Connecting-Ip", "Cf-Connecting-Ipv6", "Cf-Visitor", "Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "Fastly-Client-Ip",
	"X-Remote-Ip", "X-Remote-Addr", "X-Originating-Ip", "X-Scheme", "X-Url-Scheme", "Front-End-Https", "Wl-Proxy-Client-Ip", "Proxy-Client-Ip",
	"$WSSN", "X-Script-Name", "X-Azure-Clientip", "Fly-Client-Ip", "X-Envoy-External-Address", "X-Vercel-Forwarded-For", "Proxy",
}

// forgedIdentity are fields that proxies use for the identity of the sender.
var forgedIdentity = []string{"Remote-User", "X-Remote-User", "X_Remote_User", "Client-Cert", "Client-Cert-Chain", "Ssl-Client-Cert", "SSL_CLIENT_CERT", "X-Ssl-Client-Verify"}

// TestTheOriginIsTheGateways checks that the gateway sets Host and all fields about the origin of a
// request, whatever was sent, for token requests, other requests and WebSockets.
func TestTheOriginIsTheGateways(t *testing.T) {
	const evil = "evil.example"
	public := func(u string) func(*gateway.Options) {
		return func(o *gateway.Options) {
			var err error
			o.PublicURL, err = url.Parse(u)
			check.OK(t, err)
		}
	}
	from := func(address string, proxied bool) func(*gateway.Options) {
		return func(o *gateway.Options) {
			o.ClientAddr = func(*http.Request) (netip.Addr, bool) { a, _ := netip.ParseAddr(address); return a, proxied }
		}
	}
	unchecked := func(o *gateway.Options) { o.ClientHost = func(*http.Request) string { return "auth.example.com" } }
	withPublic := func(host, port, address string) map[string]string {
		node := address
		if strings.Contains(address, ":") {
			node = `"[` + address + `]"`
		}
		return map[string]string{
			"Host": host, "X-Forwarded-Host": host, "X-Forwarded-Proto": "https", "X-Forwarded-Port": port, "X-Forwarded-For": address, "X-Real-Ip": address,
			"Forwarded": `for=` + node + `;host="` + host + `";proto=https`,
		}
	}
	for name, tc := range map[string]struct {
		edits []func(*gateway.Options)
		want  map[string]string // Host of the upstream is "own"
		sees  []string          // forged fields that arrive
	}{
		"a stranger": {nil, map[string]string{"Host": "own", "X-Forwarded-For": "192.0.2.1", "X-Real-Ip": "192.0.2.1"}, nil},
		"a trusted proxy": {
			[]func(*gateway.Options){from("198.51.100.7", true)},
			map[string]string{"Host": "own", "X-Forwarded-For": "198.51.100.7", "X-Real-Ip": "198.51.100.7"},
			forgedIdentity,
		},
		"an unknown address": {[]func(*gateway.Options){from("", false)}, map[string]string{"Host": "own"}, nil},
		"a public URL":       {[]func(*gateway.Options){public("https://auth.example.com"), unchecked}, withPublic("auth.example.com", "443", "192.0.2.1"), nil},
		"a public URL in other letters": {
			[]func(*gateway.Options){public("https://AUTH.example.com.:443/"), unchecked}, withPublic("auth.example.com", "443", "192.0.2.1"), nil,
		},
		"a public URL and a trusted proxy": {
			[]func(*gateway.Options){public("https://auth.example.com:8443"), from("2001:db8::7", true), func(o *gateway.Options) {
				o.ClientHost = func(*http.Request) string { return "auth.example.com:8443" }
			}},
			withPublic("auth.example.com:8443", "8443", "2001:db8::7"), forgedIdentity,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got http.Header
			var host string
			w := newWorld(t, 100, tc.edits...)
			w.upstream(func(rw http.ResponseWriter, r *http.Request) {
				got, host = r.Header.Clone(), r.Host
				if r.Header.Get("Upgrade") != "" {
					rw.Header().Set("Connection", "Upgrade")
					rw.Header().Set("Upgrade", "websocket")
					rw.WriteHeader(http.StatusSwitchingProtocols)
					return
				}
				issues("ada", "")(rw, r)
			})
			const form = "client_id=shop&grant_type=client_credentials"
			for what, send := range map[string]struct {
				line, more string
				status     int
			}{
				"token request":      {"POST " + tokenPath, "Content-Length: 44\r\n", 200},
				"other request":      {"POST /login", "Content-Length: 44\r\n", 200},
				"absolute":           {"POST http://" + evil + "/login", "Content-Length: 44\r\n", 200},
				"WebSocket":          {"GET /ws", "Connection: Upgrade, X-Real-Ip\r\nUpgrade: websocket\r\n", 101},
				"metadata":           {"GET /.well-known/openid-configuration", "", 200},
				"hop-by-hop fields":  {"GET /x", "Connection: X-Forwarded-For, X-Real-Ip, Forwarded\r\n", 200},
				"a field that stays": {"GET /x", "X-Requested-With: evil.example\r\n", 200},
			} {
				request := send.line + " HTTP/1.1\r\nHost: " + evil + "\r\nContent-Type: application/x-www-form-urlencoded\r\n" + send.more
				for _, name := range slices.Concat(forgedOrigin, forgedIdentity) {
					request += name + ": " + evil + "\r\n"
				}
				request += "\r\n"
				if strings.Contains(send.more, "Content-Length") {
					request += form
				}
				status := w.raw(request)
				check.Equal(t, what, status, send.status)
				seen := map[string]string{"Host": host}
				if seen["Host"] == w.upstreamHost {
					seen["Host"] = "own"
				}
				for name, values := range got {
					if tc.want[name] != "" || strings.Contains(strings.Join(values, ""), evil) && name != "X-Requested-With" {
						seen[name] = strings.Join(values, " | ")
					}
				}
				want := maps.Clone(tc.want)
				for _, name := range tc.sees {
					want[http.CanonicalHeaderKey(name)] = evil
				}
				check.Equal(t, what, seen, want)
			}
		})
	}
}

// raw sends a request as written and returns the status.
func (w *world) raw(request string) int {
	w.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	check.OK(w.t, err)
	defer func() { check.OK(w.t, c.Close()) }()
	_, err = io.WriteString(c, request)
	check.OK(w.t, err)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	check.OK(w.t, err)
	check.OK(w.t, res.Body.Close())
	return res.StatusCode
}

// TestMisdirected checks that with a public URL only its host is served, however the request names
// another.
func TestMisdirected(t *testing.T) {
	for public, hosts := range map[string]map[string]int{
		"https://auth.example.com": {
			"auth.example.com": 200, "AUTH.Example.COM": 200, "auth.example.com:443": 200, "auth.example.com.": 200, "auth.example.com.:443": 200,
			"auth.example.com:": 200, "evil.example": 421, "auth.example.com:80": 421, "auth.example.com:8443": 421, "auth.example.com..": 421,
			"auth.example.com.evil.example": 421, "evil.auth.example.com": 421, "": 421, "127.0.0.1": 421, "[::1]": 421,
			"auth.example.com:443:443": 421, "auth.example.com,evil.example": 421,
		},
		"http://auth.example.com":       {"auth.example.com:80": 200, "auth.example.com:443": 421},
		"https://auth.example.com:8443": {"auth.example.com:8443": 200, "auth.example.com": 421, "auth.example.com:443": 421},
		"http://[::1]:9096":             {"[::1]:9096": 200, "[::1]": 421, "::1:9096": 421},
		"http://[2001:db8::1]":          {"[2001:db8::1]": 200, "[2001:DB8::1]:80": 200, "[2001:db8::1]:81": 421},
	} {
		u, err := url.Parse(public)
		check.OK(t, err)
		w := newWorld(t, 1000, func(o *gateway.Options) { o.PublicURL = u })
		w.upstream(issues("shop", ""))
		served := 0
		for host, want := range hosts {
			const form = "client_id=shop&grant_type=client_credentials"
			const post = " HTTP/1.1\r\nHost: %\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 44\r\n\r\n" + form
			requests := map[string]string{
				"token":  "POST " + tokenPath + post,
				"other":  "GET /login HTTP/1.1\r\nHost: %\r\n\r\n",
				"forged": "GET /login HTTP/1.1\r\nHost: %\r\nX-Forwarded-Host: auth.example.com\r\nForwarded: host=auth.example.com\r\n\r\n",
			}
			if host != "" && !strings.ContainsAny(host, ",") && !strings.HasPrefix(host, "::") && host != "auth.example.com:443:443" {
				requests["absolute token"] = "POST http://%" + tokenPath + strings.Replace(post, "%", "auth.example.com", 1)
				requests["absolute"] = "GET http://%/login HTTP/1.1\r\nHost: auth.example.com\r\n\r\n"
			}
			for what, request := range requests {
				check.Equal(t, public+", "+what+" to "+host, w.raw(strings.ReplaceAll(request, "%", host)), want)
				if want == 200 {
					served++
				}
			}
		}
		w.wantCame(served)
	}
}

// TestMisdirectedAuthority checks the same with HTTP/2, where the host is :authority. The gateway
// writes and logs the answer itself.
func TestMisdirectedAuthority(t *testing.T) {
	u, err := url.Parse("https://auth.example.com")
	check.OK(t, err)
	w := newWorld(t, 1, func(o *gateway.Options) { o.PublicURL = u })
	w.upstream(issues("shop", ""))
	front := httptest.NewUnstartedServer(w)
	front.EnableHTTP2 = true
	front.StartTLS()
	defer front.Close()
	for host, want := range map[string]int{"auth.example.com": 200, "evil.example": 421} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+tokenPath, strings.NewReader("client_id=shop&grant_type=client_credentials"))
		check.OK(t, err)
		req.Host = host
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := front.Client().Do(req)
		check.OK(t, err)
		body, err := io.ReadAll(res.Body)
		check.OK(t, err)
		check.OK(t, res.Body.Close())
		check.Equal(t, "protocol", res.ProtoMajor, 2)
		check.Equal(t, host, res.StatusCode, want)
		if want == 421 {
			check.Equal(t, "type", res.Header.Get("Content-Type"), "application/json")
			check.Equal(t, "an OAuth error", strings.Contains(string(body), `"error":"invalid_request"`), true)
		}
	}
	stats := w.Stats().Requests
	check.Equal(t, "refused, issued", []uint64{stats[gateway.Refused], stats[gateway.Issued]}, []uint64{1, 1})
	w.wantCame(1)
}

// TestTheHostThatAProxyNames covers a proxy that rewrites Host and passes on the host that the
// client requested.
func TestTheHostThatAProxyNames(t *testing.T) {
	u, err := url.Parse("https://auth.example.com")
	check.OK(t, err)
	addresses := &httpapi.Addresses{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, TrustedHeader: httpapi.XForwardedFor, TrustedHops: 1}
	w := newWorld(t, 1, func(o *gateway.Options) {
		o.PublicURL, o.ClientAddr, o.ClientHost = u, addresses.Of, addresses.Host
	})
	w.upstream(issues("shop", ""))
	for named, want := range map[string]int{"auth.example.com": 200, "evil.example": 421, "auth.example.com, evil.example": 421, "evil.example, auth.example.com": 200} {
		check.Equal(t, named, w.raw("GET /x HTTP/1.1\r\nHost: gateway.internal\r\nX-Forwarded-For: 198.51.100.7\r\nX-Forwarded-Host: "+named+"\r\n\r\n"), want)
	}
}

// FuzzPublicHost checks that a host is served only in its own spellings.
func FuzzPublicHost(f *testing.F) {
	for _, host := range []string{"auth.example.com", "AUTH.example.com.:443", "auth.example.com:", "evil.example", "", ".", ":443", "[::1]:443", "auth.example.com]:443"} {
		f.Add(host)
	}
	u, err := url.Parse("https://auth.example.com")
	check.OK(f, err)
	f.Fuzz(func(t *testing.T, host string) {
		rest, own := strings.CutPrefix(strings.ToLower(host), "auth.example.com")
		own = own && slices.Contains([]string{"", ".", ":", ".:", ":443", ".:443"}, rest)
		check.Equal(t, host, gateway.Serves(u, host), own)
	})
}
