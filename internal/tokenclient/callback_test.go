package tokenclient

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func FuzzCallback(f *testing.F) {
	for _, seed := range []string{
		"", "code=c&state=s", "code=c&state=s&iss=https%3A%2F%2Fas.example", "state=s&error=access_denied&iss=https://as.example",
		"code=a&code=b&state=s", "%zz", "code=c;state=s", "state=s&code=%00%1b&iss=https://as.example",
	} {
		f.Add(seed)
	}
	want := expectation{State: "s", Issuer: "https://as.example", IssuerSent: true}
	f.Fuzz(func(t *testing.T, query string) {
		c, err := parseCallback(query)
		if err != nil {
			require.ErrorIs(t, err, errUnexpected)
			return
		}
		code, err := want.check(c)
		if err != nil {
			require.Empty(t, code)
			return
		}
		// Whatever is believed says it all, once, and nothing else.
		q, err := url.ParseQuery(query)
		require.NoError(t, err)
		require.Equal(t, []string{"s"}, q["state"])
		require.Equal(t, []string{"https://as.example"}, q["iss"])
		require.Equal(t, []string{code}, q["code"])
		require.NotEmpty(t, code)
		require.Empty(t, q.Get("error"))
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
		require.Equal(t, want, retryAfter(header, now), header)
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
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, tc.token.Fresh(start.Add(tc.at)))
		})
	}
}

func TestBrowserCommandHasTheAddressAsOneArgument(t *testing.T) {
	const address = "https://as.example/authorize?a=1&b=$(x)"
	for goos, want := range map[string]string{"linux": "xdg-open", "darwin": "open", "windows": "rundll32"} {
		name, args := browserCommand(goos, address)
		require.Equal(t, want, name)
		require.Equal(t, address, args[len(args)-1])
	}
}

func TestMixUpIsNotTakenForAStranger(t *testing.T) {
	want := expectation{State: "s", Issuer: "https://as.example"}
	_, err := want.check(callback{State: "s", Issuer: "https://evil.example", Code: "c"})
	require.ErrorIs(t, err, errIssuer)
	require.False(t, errors.Is(err, errUnexpected))
}
