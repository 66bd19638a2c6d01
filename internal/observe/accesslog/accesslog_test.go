package accesslog_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/observe/accesslog"
)

func TestLine(t *testing.T) {
	remote := netip.MustParseAddr("192.0.2.7")
	long := "/" + strings.Repeat("x", 160)
	for _, tt := range []struct {
		name, method, target string
		line                 accesslog.Line
		want                 string
	}{
		{
			"a route", "POST", "/token?code=hush",
			accesslog.Line{Route: "/token", Status: 200, Bytes: 5, Remote: remote},
			"level=INFO msg=request method=POST path=/token status=200 bytes=5 duration_ms=N remote=192.0.2.7",
		},
		{
			"all that can be known", "POST", "/token",
			accesslog.Line{Route: "/token", Status: 400, Remote: remote, Grant: "password", ClientID: "shop", Error: "invalid_grant"},
			"level=INFO msg=request method=POST path=/token status=400 bytes=0 duration_ms=N remote=192.0.2.7 grant_type=password client_id=shop error=invalid_grant",
		},
		{
			"a user who is not known", "POST", "/token",
			accesslog.Line{Route: "/token", Status: 200, Remote: remote, Grant: "refresh_token", ClientID: "shop", NoUser: true},
			"level=INFO msg=request method=POST path=/token status=200 bytes=0 duration_ms=N remote=192.0.2.7 grant_type=refresh_token client_id=shop user=unknown",
		},
		{
			"a grant that is none", "POST", "/token",
			accesslog.Line{Route: "/token", Status: 400, Remote: remote, Grant: strings.Repeat("\n", 60)},
			"level=INFO msg=request method=POST path=/token status=400 bytes=0 duration_ms=N remote=192.0.2.7 grant_type=" + strings.Repeat("?", 40) + "...",
		},
		{
			"a failure", "GET", "/",
			accesslog.Line{Route: "/", Status: 500, Remote: remote},
			"level=ERROR msg=request method=GET path=/ status=500 bytes=0 duration_ms=N remote=192.0.2.7",
		},
		{
			"an unknown path", "GET", long + "?code=hush",
			accesslog.Line{Status: 404, Remote: remote},
			"level=INFO msg=request method=GET path=" + long[:128] + "... status=404 bytes=0 duration_ms=N remote=192.0.2.7",
		},
		{
			"the token path of Keycloak", "POST", "/realms/customers/protocol/openid-connect/token",
			accesslog.Line{Status: 200, Remote: remote},
			"level=INFO msg=request method=POST path=/realms/customers/protocol/openid-connect/token status=200 bytes=0 duration_ms=N remote=192.0.2.7",
		},
		{
			"unfit characters", "GET", "/%0alevel=ERROR",
			accesslog.Line{Status: 404, Remote: remote},
			`level=INFO msg=request method=GET path="/?level=ERROR" status=404 bytes=0 duration_ms=N remote=192.0.2.7`,
		},
		{
			"a probe", "GET", "/healthz",
			accesslog.Line{Route: "/healthz", Status: 200, Probe: true, Remote: remote},
			"level=DEBUG msg=request method=GET path=/healthz status=200 bytes=0 duration_ms=N remote=192.0.2.7",
		},
		{
			"a probe that fails", "GET", "/readyz",
			accesslog.Line{Route: "/readyz", Status: 503, Probe: true, Remote: remote},
			"level=ERROR msg=request method=GET path=/readyz status=503 bytes=0 duration_ms=N remote=192.0.2.7",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			tt.line.Started = time.Now()
			tt.line.Write(newLogger(&log), httptest.NewRequestWithContext(t.Context(), tt.method, tt.target, http.NoBody))
			got := regexp.MustCompile(`duration_ms=[0-9.e-]+`).ReplaceAllString(log.String(), "duration_ms=N")
			check.Equal(t, "line", got, tt.want+"\n")
		})
	}
}

// newLogger returns a logger without timestamps.
func newLogger(to *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// A caller that disconnected is the likely cause of the failure.
func TestLevelOfFailure(t *testing.T) {
	ctx, hangUp := context.WithCancel(t.Context())
	before := accesslog.LevelOfFailure(ctx, false)
	hangUp()
	if after := accesslog.LevelOfFailure(ctx, false); before != slog.LevelError || after != slog.LevelInfo {
		t.Errorf("levels %v and %v", before, after)
	}
}

func TestDenialInTheLine(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    accesslog.Denial
		want string
	}{
		{"none", accesslog.Denial{Limit: "x"}, ""},
		{"none, of a user", accesslog.Denial{Limit: "x", User: "a1b2", Hashed: true}, " user_hash=a1b2"},
		{"a hash", accesslog.Denial{Outcome: "denied", Limit: "per-minute", User: "a1b2", Hashed: true}, " outcome=denied limit=per-minute user_hash=a1b2"},
		{"a name", accesslog.Denial{Outcome: "denied", Limit: "per-minute", User: "ada"}, " outcome=denied limit=per-minute username=ada"},
		{"a client", accesslog.Denial{Outcome: "would_deny", Limit: "per-minute", Skipped: 7}, " outcome=would_deny limit=per-minute skipped=7"},
		{"no limit", accesslog.Denial{Outcome: "denied"}, " outcome=denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := accesslog.Identify(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/token", http.NoBody), http.Header{}, false)
			accesslog.NoteDenial(r.Context(), tt.d)
			check.Equal(t, "Denied", accesslog.Denied(r.Context()), tt.d.Outcome != "")
			var log bytes.Buffer
			(&accesslog.Line{Route: "/token", Status: 429, Started: time.Now()}).Write(newLogger(&log), r)
			if _, got, _ := strings.Cut(log.String(), `remote="invalid IP"`); got != tt.want+"\n" {
				t.Errorf("the line ends with %q, want %q", got, tt.want)
			}
		})
	}
	accesslog.NoteDenial(t.Context(), accesslog.Denial{Outcome: "denied"}) // outside a request
}

func TestPeer(t *testing.T) {
	for from, want := range map[string]netip.Addr{
		"192.0.2.7:4711":             netip.MustParseAddr("192.0.2.7"),
		"[::ffff:192.0.2.7]:4711":    netip.MustParseAddr("192.0.2.7"),
		"[2001:db8::1%eth0]:4711":    netip.MustParseAddr("2001:db8::1"),
		"@":                          {},
		"":                           {},
		"192.0.2.7 without its port": {},
	} {
		check.Equal(t, from, accesslog.Peer(&http.Request{RemoteAddr: from}), want)
	}
}

func TestIdentify(t *testing.T) {
	for _, tt := range []struct {
		sent    string
		trusted bool
		kept    bool
	}{{"abc-1", true, true}, {"abc-1", false, false}, {"a b", true, false}, {"", true, false}} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Header.Set("X-Request-Id", tt.sent)
		answer := http.Header{}
		r = accesslog.Identify(r, answer, tt.trusted)
		id := accesslog.RequestID(r.Context())
		if id == "" || answer.Get("X-Request-Id") != id || (id == tt.sent) != tt.kept {
			t.Errorf("%+v: id %q, and %q in the answer", tt, id, answer.Get("X-Request-Id"))
		}
		var log bytes.Buffer
		slog.New(accesslog.WithRequestID(slog.NewTextHandler(&log, nil))).InfoContext(r.Context(), "x")
		if !strings.Contains(log.String(), "request_id="+id) {
			t.Errorf("no id in %s", log.String())
		}
	}
}

func TestWithRequestIDTwice(t *testing.T) {
	h := accesslog.WithRequestID(slog.NewTextHandler(&bytes.Buffer{}, nil))
	check.Equal(t, "wrapped twice", accesslog.WithRequestID(h), h)
	for _, derived := range []slog.Handler{h.WithAttrs([]slog.Attr{slog.String("a", "b")}), h.WithGroup("g")} {
		if got, want := reflect.TypeOf(derived), reflect.TypeOf(h); got != want {
			t.Errorf("a derived handler is a %v, want a %v", got, want)
		}
	}
}
