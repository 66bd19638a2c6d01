package httpapi_test

import (
	"bytes"
	"cmp"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/httpapi"
)

// behindProxies is a server with proxies in 10.0.0.0/8 and fd00::/8.
type behindProxies struct {
	*fake
	*httpapi.Server
	log bytes.Buffer // warnings
}

func newBehindProxies(tb testing.TB, edits ...func(*httpapi.Options)) *behindProxies {
	tb.Helper()
	b := &behindProxies{fake: newFake()}
	b.Server = newServer(tb, b.fake, func(o *httpapi.Options) {
		trusting("10.0.0.0/8", "fd00::/8")(o)
		o.Logger = slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		for _, edit := range edits {
			edit(o)
		}
	})
	return b
}

// remote returns the address that the server uses as the client's.
func (b *behindProxies) remote(peer, header string, lines ...string) string {
	return b.remoteOf(peer, http.Header{header: lines})
}

func (b *behindProxies) remoteOf(peer string, header http.Header) string {
	r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader("grant_type=x&client_id=y"))
	r.RemoteAddr, r.Header = peer, header.Clone()
	r.Header.Set("Content-Type", formType)
	b.ServeHTTP(httptest.NewRecorder(), r)
	return b.token.Remote.String()
}

func reading(header string, hops int) func(*httpapi.Options) {
	return func(o *httpapi.Options) {
		o.Addresses.TrustedHeader, o.Addresses.TrustedHops = cmp.Or(header, httpapi.XForwardedFor), cmp.Or(hops, 1)
	}
}

func TestClientAddress(t *testing.T) {
	tests := map[string]struct {
		peer, want string
		forwarded  []string
	}{
		"no proxy":                 {"198.51.100.7:1", "198.51.100.7", nil},
		"forwarded by a stranger":  {"198.51.100.7:1", "198.51.100.7", []string{"203.0.113.9"}},
		"one proxy":                {"10.0.0.1:1", "203.0.113.9", []string{"203.0.113.9"}},
		"two proxies":              {"10.0.0.1:1", "203.0.113.9", []string{"203.0.113.9, 10.0.0.2"}},
		"two lines":                {"10.0.0.1:1", "203.0.113.9", []string{"203.0.113.9", "10.0.0.2"}},
		"made up by the client":    {"10.0.0.1:1", "203.0.113.9", []string{"127.0.0.1, 203.0.113.9"}},
		"proxy without header":     {"10.0.0.1:1", "10.0.0.1", nil},
		"nonsense":                 {"10.0.0.1:1", "10.0.0.1", []string{"nonsense"}},
		"nonsense behind a proxy":  {"10.0.0.1:1", "10.0.0.2", []string{"203.0.113.9, nonsense, 10.0.0.2"}},
		"nothing but proxies":      {"10.0.0.1:1", "10.0.0.3", []string{"10.0.0.3, 10.0.0.2"}},
		"an empty entry":           {"10.0.0.1:1", "10.0.0.2", []string{"203.0.113.9,,10.0.0.2"}},
		"an empty line":            {"10.0.0.1:1", "10.0.0.1", []string{"203.0.113.9", ""}},
		"with a port":              {"10.0.0.1:1", "203.0.113.9", []string{"203.0.113.9:4711"}},
		"IPv6":                     {"[fd00::1]:1", "2001:db8::9", []string{"2001:db8::9"}},
		"IPv6 in brackets":         {"[fd00::1]:1", "2001:db8::9", []string{"[2001:db8::9]"}},
		"IPv6 with port":           {"[fd00::1]:1", "2001:db8::9", []string{"[2001:db8::9]:4711"}},
		"IPv6 half in brackets":    {"[fd00::1]:1", "fd00::1", []string{"[2001:db8::9"}},
		"IPv6 and more":            {"[fd00::1]:1", "fd00::1", []string{"[2001:db8::9]x"}},
		"IPv4 in brackets":         {"10.0.0.1:1", "10.0.0.1", []string{"[203.0.113.9]"}},
		"IPv4 in IPv6":             {"[::ffff:10.0.0.1]:1", "203.0.113.9", []string{"::ffff:203.0.113.9"}},
		"Unix socket":              {"@", "invalid IP", []string{"203.0.113.9"}},
		"peer with a zone":         {"[fe80::1%eth0]:1", "fe80::1", nil},
		"a long way of bad habits": {"10.0.0.1:1", "203.0.113.9", []string{strings.Repeat("1.2.3.4,", 1000) + "203.0.113.9"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newBehindProxies(t, reading("", 9))
			check.Equal(t, "remote address", s.remote(tt.peer, "X-Forwarded-For", tt.forwarded...), tt.want)
			check.Equal(t, "warnings", s.log.String(), "")
		})
	}
}

// TestClientAddressInForwarded reads the examples of RFC 7239, and similar values.
func TestClientAddressInForwarded(t *testing.T) {
	const none = "10.0.0.1" // the proxy itself
	tests := map[string]struct {
		want  string
		lines []string
	}{
		"RFC 7239 4, first":          {none, []string{`for="_gazonk"`}},
		"RFC 7239 4, second":         {"2001:db8:cafe::17", []string{`For="[2001:db8:cafe::17]:4711"`}},
		"RFC 7239 4, third":          {"192.0.2.60", []string{`for=192.0.2.60;proto=http;by=203.0.113.43`}},
		"RFC 7239 4, fourth":         {"198.51.100.17", []string{`for=192.0.2.43, for=198.51.100.17`}},
		"RFC 7239 6.1":               {"192.0.2.43", []string{`for="192.0.2.43:47011"`}},
		"RFC 7239 6.3":               {none, []string{`for=_SEVKISEK`}},
		"RFC 7239 7.4":               {"2001:db8:cafe::17", []string{`for=192.0.2.43,for="[2001:db8:cafe::17]",for=10.0.0.7`}},
		"two proxies":                {"203.0.113.9", []string{`for=203.0.113.9, for=10.0.0.2`}},
		"two lines":                  {"203.0.113.9", []string{`for=203.0.113.9`, `for=10.0.0.2`}},
		"made up by the client":      {"203.0.113.9", []string{`for=127.0.0.1, for=203.0.113.9`}},
		"unknown":                    {none, []string{`for=203.0.113.9, for=unknown`}},
		"unknown behind a proxy":     {"10.0.0.2", []string{`for=203.0.113.9, for=unknown, for=10.0.0.2`}},
		"obfuscated port":            {"203.0.113.9", []string{`for="203.0.113.9:_x"`}},
		"escapes":                    {"203.0.113.9", []string{`for="20\3.0.113.\9"`}},
		"quotes and commas":          {"203.0.113.9", []string{`host="a,for=1.2.3.4;\"";for=203.0.113.9`}},
		"blanks":                     {"203.0.113.9", []string{" for=203.0.113.9 ;\tproto=https ; "}},
		"no quotes about a colon":    {"203.0.113.9", []string{`for=203.0.113.9:4711`}},
		"no for":                     {none, []string{`for=203.0.113.9, proto=https`}},
		"two for":                    {none, []string{`for=203.0.113.9;for=203.0.113.10`}},
		"empty for":                  {none, []string{`for=`}},
		"empty element":              {none, []string{`for=203.0.113.9,`}},
		"empty line":                 {none, []string{`for=203.0.113.9`, ``}},
		"no name":                    {none, []string{`=203.0.113.9`}},
		"no value":                   {none, []string{`for`}},
		"blanks about =":             {none, []string{`for = 203.0.113.9`}},
		"text after a quote":         {none, []string{`for="203.0.113.9"x`}},
		"X-Forwarded-For":            {none, []string{`203.0.113.9`}},
		"open quote":                 {none, []string{`for="203.0.113.9`}},
		"ends with a backslash":      {none, []string{`for="203.0.113.9\`}},
		"client's open quote":        {none, []string{`for=1.2.3.4;x=", for=203.0.113.9`}},
		"client's quote, and ours":   {none, []string{`for=1.2.3.4;x=", for="[2001:db8::9]:4711"`}},
		"client's open quote, alone": {"203.0.113.9", []string{`for=1.2.3.4;x="`, `for=203.0.113.9`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newBehindProxies(t, reading(httpapi.Forwarded, 9))
			check.Equal(t, "remote address", s.remote("10.0.0.1:1", "Forwarded", tt.lines...), tt.want)
		})
	}
}

// TestOnlyTheTrustedHeaderIsRead covers a proxy that passes on the other header as the client sent
// it.
func TestOnlyTheTrustedHeaderIsRead(t *testing.T) {
	both := http.Header{"X-Forwarded-For": {"203.0.113.9"}, "Forwarded": {"for=198.51.100.7"}, "X-Real-Ip": {"192.0.2.1"}}
	for header, want := range map[string]string{
		"": "203.0.113.9", httpapi.XForwardedFor: "203.0.113.9", httpapi.Forwarded: "198.51.100.7",
	} {
		s := newBehindProxies(t, reading(header, 1))
		check.Equal(t, "remote address by "+header, s.remoteOf("10.0.0.1:1", both), want)
		alone := both.Clone()
		alone.Del(cmp.Or(header, httpapi.XForwardedFor))
		check.Equal(t, "remote address without "+header, s.remoteOf("10.0.0.1:1", alone), "10.0.0.1")
	}
}

// TestTrustedHops checks that a client with a trusted address can claim only its own address.
func TestTrustedHops(t *testing.T) {
	const line = "203.0.113.9, 10.0.0.4, 10.0.0.3, 10.0.0.2"
	for hops, want := range []string{"10.0.0.2", "10.0.0.2", "10.0.0.3", "10.0.0.4", "203.0.113.9", "203.0.113.9"} {
		for _, lines := range [][]string{{line}, strings.Split(line, ", ")} {
			s := newBehindProxies(t, reading("", hops))
			for range 2 {
				check.Equal(t, "remote address", s.remote("10.0.0.1:1", "X-Forwarded-For", lines...), want)
			}
			warnings := 1
			if want == "203.0.113.9" {
				warnings = 0
			}
			check.Equal(t, "warnings", strings.Count(s.log.String(), "raise trusted_hops"), warnings)
		}
	}
}

// FuzzClientAddress checks that, whatever a client sends, the address is the one that a proxy
// appended, or the proxy's own.
//
// Attack (sources): A forged source address. Only the address that a trusted proxy appended
// counts. The admin listener ignores forwarded headers. Also httpapi.TestTrustedHops,
// httpapi.TestOnlyTheTrustedHeaderIsRead, deploycheck.TestForgedAddressesThroughNginx,
// httpapi.TestForwardedHeadersForOperators.
func FuzzClientAddress(f *testing.F) {
	for _, s := range []string{
		"", "1.2.3.4", "1.2.3.4, 10.0.0.2", "[2001:db8::9]:4711, nonsense", ",,", "10.0.0.9", "[", "1.2.3.4:", "::ffff:1.2.3.4",
		"for=1.2.3.4", `for=1.2.3.4;x="`, `for="[2001:db8::9]:4711";by=_x`, `for="\`, `for=1.2.3.4,for=unknown;`, `for=";"`, "for=_x, =", `a="",for=1`,
	} {
		f.Add(s, 1)
		f.Add(s, 3)
	}
	const client, proxy = "203.0.113.9", "10.0.0.1"
	forms := map[string][]string{
		httpapi.XForwardedFor: {client, client + ":4711"},
		httpapi.Forwarded:     {"for=" + client, `proto=https;for="` + client + `:4711";by=_x`},
	}
	servers := map[string][]*behindProxies{}
	for header := range forms {
		for hops := range 5 {
			servers[header] = append(servers[header], newBehindProxies(f, reading(header, hops+1)))
		}
	}
	f.Fuzz(func(t *testing.T, sent string, hops int) {
		for header, appended := range forms {
			s := servers[header][max(0, min(hops-1, 4))]
			for _, own := range appended {
				if got := s.remote(proxy+":1", header, sent, own); got != client {
					t.Errorf("%s: client is %s after %q", header, got, sent)
				}
				got := s.remote(proxy+":1", header, sent+", "+own)
				if got != client && (header == httpapi.XForwardedFor || got != proxy) {
					t.Errorf("%s: client is %s after %q in one line", header, got, sent)
				}
			}
			if got := s.remote("198.51.100.7:1", header, sent); got != "198.51.100.7" {
				t.Errorf("%s: client is %s after %q from a stranger", header, got, sent)
			}
			if _, err := netip.ParseAddr(s.remote(proxy+":1", header, sent)); err != nil {
				t.Errorf("%s: %q: %v", header, sent, err)
			}
		}
	})
}

// TestClientHost checks that the host is the one from the trusted proxy nearest to the client, in
// the trusted header.
func TestClientHost(t *testing.T) {
	type header = http.Header
	const own, stranger = "gateway.internal", "198.51.100.7:1"
	for name, tt := range map[string]struct {
		peer, trusted string
		hops          int
		header        header
		want          string
	}{
		"a stranger":             {stranger, httpapi.XForwardedFor, 1, header{"X-Forwarded-Host": {"evil.example"}}, own},
		"a stranger, Forwarded":  {stranger, httpapi.Forwarded, 1, header{"Forwarded": {"host=evil.example"}}, own},
		"nothing said":           {"", httpapi.XForwardedFor, 1, header{"X-Forwarded-For": {"203.0.113.9"}}, own},
		"a proxy":                {"", httpapi.XForwardedFor, 1, header{"X-Forwarded-For": {"203.0.113.9"}, "X-Forwarded-Host": {"auth.example"}}, "auth.example"},
		"a proxy, only its host": {"", httpapi.XForwardedFor, 1, header{"X-Forwarded-Host": {"auth.example:8443"}}, "auth.example:8443"},
		"appended":               {"", httpapi.XForwardedFor, 1, header{"X-Forwarded-Host": {"evil.example, auth.example"}}, "auth.example"},
		"appended in a line":     {"", httpapi.XForwardedFor, 1, header{"X-Forwarded-Host": {"evil.example", "auth.example"}}, "auth.example"},
		"two proxies": {
			"", httpapi.XForwardedFor, 2,
			header{"X-Forwarded-For": {"203.0.113.9, 10.0.0.2"}, "X-Forwarded-Host": {"evil.example, auth.example, inner.example"}},
			"auth.example",
		},
		"two proxies, one trusted": {
			"", httpapi.XForwardedFor, 1,
			header{"X-Forwarded-For": {"203.0.113.9, 10.0.0.2"}, "X-Forwarded-Host": {"evil.example, auth.example"}},
			"auth.example",
		},
		"two proxies, one host": {
			"", httpapi.XForwardedFor, 2, header{"X-Forwarded-For": {"203.0.113.9, 10.0.0.2"}, "X-Forwarded-Host": {"auth.example"}}, "auth.example",
		},
		"the other header": {
			"", httpapi.Forwarded, 1, header{"Forwarded": {"for=203.0.113.9"}, "X-Forwarded-Host": {"evil.example"}}, own,
		},
		"the other header, Forwarded": {
			"", httpapi.XForwardedFor, 1, header{"X-Forwarded-For": {"203.0.113.9"}, "Forwarded": {"for=1.2.3.4;host=evil.example"}}, own,
		},
		"Forwarded":             {"", httpapi.Forwarded, 1, header{"Forwarded": {`for=203.0.113.9;Host="auth.example:8443";proto=https`}}, "auth.example:8443"},
		"Forwarded, appended":   {"", httpapi.Forwarded, 1, header{"Forwarded": {`host=evil.example, host=auth.example;for=203.0.113.9`}}, "auth.example"},
		"Forwarded, unknown":    {"", httpapi.Forwarded, 1, header{"Forwarded": {`host=evil.example, host=auth.example;for=unknown`}}, "auth.example"},
		"Forwarded, no host":    {"", httpapi.Forwarded, 1, header{"Forwarded": {`host=evil.example, for=203.0.113.9`}}, own},
		"Forwarded, malformed":  {"", httpapi.Forwarded, 1, header{"Forwarded": {`host=evil.example;x=", host=auth.example`}}, own},
		"Forwarded, two":        {"", httpapi.Forwarded, 2, header{"Forwarded": {`host=evil.example, for=203.0.113.9;host=auth.example, for=10.0.0.2;host=inner`}}, "auth.example"},
		"Forwarded, two, inner": {"", httpapi.Forwarded, 2, header{"Forwarded": {`host=evil.example, for=203.0.113.9, for=10.0.0.2;host=auth.example`}}, "auth.example"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &httpapi.Addresses{
				TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, TrustedHeader: tt.trusted, TrustedHops: tt.hops,
				Logger: slog.New(slog.DiscardHandler),
			}
			check.Equal(t, "host", a.Host(&http.Request{Host: own, RemoteAddr: cmp.Or(tt.peer, "10.0.0.1:1"), Header: tt.header}), tt.want)
		})
	}
}

// FuzzClientHost checks that, whatever a client sends, the host is the one that the proxy appended,
// or the host of the request if an open quote of the client hides it.
//
// Attack (sources): A forged host. Only the host from a trusted proxy counts. A gateway sets
// host and forwarded fields itself, and serves its public host only. Also
// gateway.TestTheOriginIsTheGateways, gateway.TestMisdirected.
func FuzzClientHost(f *testing.F) {
	for _, s := range []string{"", "evil.example", "evil.example, ", "host=evil.example", `host="evil.example`, `for=1.2.3.4;x="`, `host="\`, ",,", "for=10.0.0.9;host=evil.example", `a="",host=1`} {
		f.Add(s)
	}
	const own, public = "gateway.internal", "auth.example"
	f.Fuzz(func(t *testing.T, sent string) {
		for trusted, tc := range map[string]struct{ field, appended string }{
			httpapi.XForwardedFor: {"X-Forwarded-Host", public}, httpapi.Forwarded: {"Forwarded", "for=203.0.113.9;host=" + public},
		} {
			a := &httpapi.Addresses{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, TrustedHeader: trusted, TrustedHops: 1}
			host := func(peer string, lines ...string) string {
				return a.Host(&http.Request{Host: own, RemoteAddr: peer, Header: http.Header{tc.field: lines}})
			}
			check.Equal(t, trusted+" in a line of its own", host("10.0.0.1:1", sent, tc.appended), public)
			if got := host("10.0.0.1:1", sent+", "+tc.appended); got != public && (trusted == httpapi.XForwardedFor || got != own) {
				t.Errorf("%s: host is %s after %q in one line", trusted, got, sent)
			}
			check.Equal(t, trusted+" from a stranger", host("198.51.100.7:1", sent), own)
		}
	})
}
