package grants

import (
	"testing"
)

const exampleCallback = "https://shop.example.com/callback"

// Attack (rfc9700): 2.1, 4.1 redirect URIs. They match byte for byte, except for the port of a
// loopback address. Registration refuses wildcards, fragments, and http beyond loopback. Also
// grants.FuzzRedirectMatches, redirecturi.TestValidateRedirectURI.
func TestRedirectMatches(t *testing.T) {
	for name, tc := range map[string]struct {
		registered, presented string
		want                  bool
	}{
		"the same":                  {exampleCallback, exampleCallback, true},
		"https never by port":       {"https://127.0.0.1/cb", "https://127.0.0.1:8443/cb", false},
		"IPv4, a port":              {"http://127.0.0.1/cb", "http://127.0.0.1:1234/cb", true},
		"IPv4, another port":        {"http://127.0.0.1:1/cb", "http://127.0.0.1:65535/cb", true},
		"IPv4, port to none":        {"http://127.0.0.1:1/cb", "http://127.0.0.1/cb", true},
		"IPv6, a port":              {"http://[::1]/cb", "http://[::1]:1234/cb", true},
		"localhost, a port":         {"http://localhost/cb", "http://localhost:1234/cb", true},
		"query kept":                {"http://127.0.0.1/cb?a=b", "http://127.0.0.1:1/cb?a=b", true},
		"other loopback":            {"http://127.0.0.1/cb", "http://localhost:1234/cb", false},
		"other family":              {"http://127.0.0.1/cb", "http://[::1]:1234/cb", false},
		"other path":                {"http://127.0.0.1/cb", "http://127.0.0.1:1234/cb2", false},
		"no path":                   {"http://127.0.0.1/", "http://127.0.0.1:1234", false},
		"escaped path":              {"http://127.0.0.1/cb", "http://127.0.0.1:1234/c%62", false},
		"other query":               {"http://127.0.0.1/cb", "http://127.0.0.1:1234/cb?x=1", false},
		"empty query":               {"http://127.0.0.1/cb", "http://127.0.0.1:1234/cb?", false},
		"fragment":                  {"http://127.0.0.1/cb", "http://127.0.0.1:1234/cb#x", false},
		"empty fragment":            {"http://127.0.0.1/cb", "http://127.0.0.1:1234/cb#", false},
		"user information":          {"http://127.0.0.1/cb", "http://127.0.0.1:1234@evil.com/cb", false},
		"user information, inverse": {"http://127.0.0.1/cb", "http://evil@127.0.0.1:1234/cb", false},
		"port zero":                 {"http://127.0.0.1/cb", "http://127.0.0.1:0/cb", false},
		"port too large":            {"http://127.0.0.1/cb", "http://127.0.0.1:65536/cb", false},
		"empty port":                {"http://127.0.0.1/cb", "http://127.0.0.1:/cb", false},
		"scheme in capitals":        {"http://127.0.0.1/cb", "HTTP://127.0.0.1:1234/cb", false},
		"suffix of the host":        {"http://127.0.0.1/cb", "http://127.0.0.1.evil.com:1234/cb", false},
		"any port elsewhere":        {"http://example.com/cb", "http://example.com:1234/cb", false},
		"decimal address":           {"http://127.0.0.1/cb", "http://2130706433:1234/cb", false},
		"not a URI":                 {"http://127.0.0.1/cb", "http://127.0.0.1:12 34/cb", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := redirectMatches(tc.registered, tc.presented); got != tc.want {
				t.Errorf("redirectMatches(%q, %q) = %v, want %v", tc.registered, tc.presented, got, tc.want)
			}
		})
	}
}

func FuzzRedirectMatches(f *testing.F) {
	f.Add("http://127.0.0.1:1234/cb")
	f.Add("http://[::1]:1234/cb")
	f.Add("http://127.0.0.1:1234@evil.com/cb")
	f.Fuzz(func(t *testing.T, presented string) {
		if redirectMatches(exampleCallback, presented) && presented != exampleCallback {
			t.Fatalf("%q taken for %q", presented, exampleCallback)
		}
		const registered = "http://127.0.0.1/cb"
		if !redirectMatches(registered, presented) || presented == registered {
			return
		}
		port := presented[len("http://127.0.0.1:") : len(presented)-len("/cb")]
		if "http://127.0.0.1:"+port+"/cb" != presented {
			t.Fatalf("%q taken for %q", presented, registered)
		}
		for _, r := range port {
			if r < '0' || r > '9' {
				t.Fatalf("port %q", port)
			}
		}
	})
}
