package tokenclient

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
)

func FuzzCallback(f *testing.F) {
	for _, seed := range []string{
		"", "code=c&state=s", "code=c&state=s&iss=https%3A%2F%2Fas.example", "state=s&error=access_denied&iss=https://as.example",
		"code=a&code=b&state=s", "%zz", "code=c;state=s", "state=s&code=%00%1b&iss=https://as.example",
	} {
		f.Add(seed)
	}
	l := &loopback{state: "s", issuer: "https://as.example", issuerSent: true}
	f.Fuzz(func(t *testing.T, query string) {
		code, err := l.code(query)
		if err != nil {
			if code != "" {
				t.Fatalf("code(%q): %q with the error %v", query, code, err)
			}
			return
		}
		// An accepted callback has each of the three once, and no error.
		q, err := url.ParseQuery(query)
		check.OK(t, err)
		got := url.Values{"state": q["state"], "iss": q["iss"], "code": q["code"]}
		check.Equal(t, "accepted", got, url.Values{"state": {"s"}, "iss": {"https://as.example"}, "code": {code}})
		if code == "" || q.Get("error") != "" {
			t.Errorf("accepted with code %q and error %q", code, q.Get("error"))
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"":                     0,
		"37":                   37 * time.Second,
		"-5":                   0,
		"soon":                 0,
		"1e9":                  0,
		"99999999999999999999": 0,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
	} {
		check.Equal(t, header, retryAfter(header, now), want)
	}
}

func TestFresh(t *testing.T) {
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	token := func(life time.Duration) *Token {
		return &Token{AccessToken: "t", ObtainedAt: start, ExpiresAt: start.Add(life)}
	}
	cases := map[string]struct {
		token *Token
		at    time.Duration
		want  bool
	}{
		"none":                      {nil, 0, false},
		"empty":                     {&Token{ExpiresAt: start.Add(time.Hour)}, 0, false},
		"no expiry":                 {&Token{AccessToken: "t"}, 0, false},
		"new":                       {token(time.Hour), 0, true},
		"half a minute left":        {token(time.Hour), time.Hour - 30*time.Second, false},
		"a little more left":        {token(time.Hour), time.Hour - 30*time.Second - 1, true},
		"a short one has less":      {token(time.Minute), 54*time.Second - 1, true},
		"of a short one is a tenth": {token(time.Minute), 54 * time.Second, false},
	}
	for name, tc := range cases {
		check.Equal(t, name, tc.token.Fresh(start.Add(tc.at)), tc.want)
	}
}

func TestBrowserCommandHasTheAddressAsOneArgument(t *testing.T) {
	const address = "https://as.example/authorize?a=1&b=$(x)"
	for goos, want := range map[string]string{"linux": "xdg-open", "darwin": "open", "windows": "rundll32"} {
		name, args := browserCommand(goos, address)
		if name != want || args[len(args)-1] != address {
			t.Errorf("browserCommand(%q) = %s %q, want %s with the address last", goos, name, args, want)
		}
	}
}

// TestMixUpEndsTheSignIn: the answer of another issuer is an error, and is not ignored.
func TestMixUpEndsTheSignIn(t *testing.T) {
	l := &loopback{state: "s", issuer: "https://as.example"}
	_, err := l.code("state=s&code=c&iss=https%3A%2F%2Fevil.example")
	if !errors.Is(err, errIssuer) || errors.Is(err, errUnexpected) {
		t.Errorf("code() = %v, want %v alone", err, errIssuer)
	}
}

// FuzzDecodeJWT: the claims that are shown are the JSON object of the middle part, and what a server
// sends cannot control the terminal.
func FuzzDecodeJWT(f *testing.F) {
	object := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"a"}`))
	for _, seed := range []string{"", "a.b.c", "." + object + ".", object, "x." + object + ".y.z", "." + object + "=.", ".W10.", ".bnVsbA."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		payload := decodeJWT(token)
		if payload == nil {
			return
		}
		if middle := strings.Split(token, ".")[1]; !json.Valid(payload) || base64.RawURLEncoding.EncodeToString(payload) != canonicalBase64(middle) {
			t.Errorf("%q has the claims %q", token, payload)
		}
	})
}

// canonicalBase64 removes what encoding/base64 reads over: line ends, and the bits after the last
// byte.
func canonicalBase64(s string) string {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// FuzzServerText: a wait is never negative, and text of a server has no control characters.
//
// Attack (input): A server that attacks the terminal. Control characters are not printed. Also
// tokenclient.FuzzDecodeJWT.
func FuzzServerText(f *testing.F) {
	for _, seed := range []string{"37", "-5", "1e9", "99999999999999999999", "Wed, 01 Jul 2026 12:01:30 GMT", "\x1b[2J", "\u009b1m", "\xff"} {
		f.Add(seed)
	}
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		if wait := retryAfter(text, now); wait < 0 {
			t.Errorf("wait %v", wait)
		}
		shown := printable(text)
		if strings.ContainsFunc(shown, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }) {
			t.Errorf("shown as %q", shown)
		}
		if printable(shown) != shown {
			t.Errorf("%q is not shown as it is", shown)
		}
	})
}
