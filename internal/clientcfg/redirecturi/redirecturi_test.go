package redirecturi

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestPlainHTTPS: a URI accepted without parsing is also accepted with parsing.
func TestPlainHTTPS(t *testing.T) {
	r, plain := rand.New(rand.NewPCG(1, 2)), 0
	const alphabet = "a0.-/?=&_~Z:@%#*[] \x7f\xff"
	for range 20_000 {
		uri := []byte("https://")
		for range r.IntN(8) {
			uri = append(uri, alphabet[r.IntN(len(alphabet))])
		}
		if !isPlainHTTPS(string(uri)) {
			continue
		}
		plain++
		check.OK(t, validateAny(string(uri)))
	}
	if plain < 100 || !isPlainHTTPS("https://app.example/cb?a=1&b=2") {
		t.Errorf("%d URIs were plain: the test is blind", plain)
	}
}

func TestValidateRedirectURI(t *testing.T) {
	tests := []struct{ uri, want string }{
		{"https://app.example/callback", ""},
		{"https://app.example/callback?tenant=1", ""},
		{"http://127.0.0.1/callback", ""},
		{"http://127.0.0.1:8080/callback", ""},
		{"http://[::1]:8080/callback", ""},
		{"http://localhost:8080/callback", ""},
		{"com.example.app:/callback", ""},
		{"http://app.example/callback", "must be https"},
		{"http://127.0.0.1.evil.example/callback", "must be https"},
		{"/callback", "not absolute"},
		{"", "not absolute"},
		{"https:///callback", "names no host"},
		{"https://app.example/#top", "fragment"},
		{"https://app.example/#", "fragment"},
		{"https://user@app.example/", "user information"},
		{"javascript:alert(1)", "must be https"},
		{"data:text/html,x", "must be https"},
		{"https://app.example/%zz", "not a URI"},
		{"https://app.example/a b", "not a URI"},
		{"https://app.example/{tenant}", "not a URI"},
		{"https://äpp.example/", "not a URI"},
		{"https://:443/", "names no host"},
		{"https://*.app.example/", "wildcard"},
		{"https://app.example:65536/", "port"},
		{"http://127.0.0.1:0/callback", "port"},
	}
	for _, tt := range tests {
		t.Run(tt.uri, func(t *testing.T) {
			err := Validate(tt.uri)
			if tt.want == "" {
				check.OK(t, err)
				return
			}
			check.ErrorSays(t, err, tt.want)
		})
	}
}

// FuzzRedirectURI: every URI that can be registered leads to https, a loopback address or an app.
func FuzzRedirectURI(f *testing.F) {
	for _, seed := range []string{
		"https://app.example/cb?tenant=a%20b", "http://127.0.0.1:0/cb", "http://[::1]:7777/cb", "com.example.app:/cb", "javascript:alert(1)",
		"https://user@app.example/", "https://*.example/", "http://127.0.0.1.evil.example/", "https:///cb", "https://app.example/#", "data:text/html,x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if Validate(raw) != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || strings.ContainsAny(raw, "# \r\n\t\"<>\\") || u.User != nil {
			t.Fatalf("%q is accepted: %v", raw, err)
		}
		loopback := u.Scheme == "http" && IsLoopback(u.Hostname())
		if u.Scheme != "https" && !loopback && !strings.Contains(u.Scheme, ".") {
			t.Errorf("%q is accepted", raw)
		}
		if u.Hostname() == "" && !strings.Contains(u.Scheme, ".") {
			t.Errorf("%q names no host", raw)
		}
	})
}
