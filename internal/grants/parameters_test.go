package grants

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/oautherr"
)

func TestGrantScope(t *testing.T) {
	client := &clientcfg.Client{Scopes: []string{"a", "b", "c"}}
	for name, tc := range map[string]struct {
		raw  string
		want []string // nil: refused
	}{
		"absent":            {"", []string{"a", "b", "c"}},
		"only spaces":       {"  ", []string{"a", "b", "c"}},
		"some":              {"c a", []string{"c", "a"}},
		"repeated":          {"a  b a", []string{"a", "b"}},
		"one too many":      {"a d", nil},
		"other case":        {"A", nil},
		"tab is no space":   {"a\tb", nil},
		"not ASCII":         {"ä", nil},
		"comma is no space": {"a,b", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := grantScope(client, tc.raw)
			if !slices.Equal(got, tc.want) || (err != nil) != (tc.want == nil) {
				t.Errorf("grantScope(%q) = %q, %v, want %q", tc.raw, got, err, tc.want)
			}
		})
	}
	_, refused := grantScope(client, "a openid")
	if refused == nil || refused.Code != oautherr.InvalidScope || !strings.Contains(refused.Description, "does not support OpenID Connect") {
		t.Errorf("openid was answered with %v", refused)
	}
	none, err := grantScope(&clientcfg.Client{}, "")
	if err != nil || len(none) != 0 {
		t.Errorf("grantScope of a client without scopes = %q, %v, want none", none, err)
	}
}

func FuzzParseScope(f *testing.F) {
	f.Add("read write")
	f.Add("  a  a ")
	f.Add("\"")
	f.Fuzz(func(t *testing.T, raw string) {
		scopes, err := parseScope(raw)
		if err != nil {
			if err.Code != oautherr.InvalidScope {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := parseScope(strings.Join(scopes, " "))
		if err != nil || !slices.Equal(scopes, again) {
			t.Fatalf("%q, then %q, %v", scopes, again, err)
		}
		for _, s := range scopes {
			if !clientcfg.ValidScopeToken(s) || !strings.Contains(raw, s) {
				t.Fatalf("%q from %q", s, raw)
			}
		}
	})
}

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// unreserved are the characters of RFC 3986 2.3.
var unreserved = regexp.MustCompile(`\A[A-Za-z0-9._~-]*\z`)

// FuzzPKCE: only the verifier of its challenge redeems a code, and a public client gets no code
// without a challenge.
func FuzzPKCE(f *testing.F) {
	const example = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636 appendix B
	if got := challengeOf(example); got != "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" {
		f.Fatalf("the challenge of the example is %s", got)
	}
	f.Add(challengeOf(example), "S256", example, true)
	for _, verifier := range []string{example[1:], example + "/", example + " ", example + "é", strings.Repeat("aZ09-._~", 16), strings.Repeat("a", 129)} {
		f.Add(challengeOf(verifier), "S256", verifier, true)
	}
	f.Add(challengeOf(example)+"=", "S256", example, true)
	f.Add(challengeOf(example), "S256", "", false)
	f.Add(challengeOf(example), "S256", challengeOf(example), false)
	f.Add(example, "plain", example, false)
	f.Add("", "", "", true)
	f.Add("", "", "", false)
	f.Add("", "", example, false)
	f.Add("", "S256", strings.Repeat("a", 128), false)
	f.Add(strings.Repeat("~", 43), "S256", strings.Repeat("~", 129), true)
	f.Fuzz(func(t *testing.T, challenge, method, verifier string, public bool) {
		client := &clientcfg.Client{Public: public, WithoutPKCE: !public}
		sound := method == "S256" && len(challenge) == 43 && unreserved.MatchString(challenge)
		if err := checkChallenge(client, challenge, method); (err == nil) != (sound || challenge == "" && method == "" && !public) {
			t.Errorf("challenge %q with the method %q: %v", challenge, method, err)
		}
		sum := sha256.Sum256([]byte(verifier))
		fits := challenge == base64.RawURLEncoding.EncodeToString(sum[:]) && len(verifier) >= 43 && len(verifier) <= 128 && unreserved.MatchString(verifier)
		if err := checkVerifier(challenge, verifier); (err == nil) != (fits || challenge == "" && verifier == "") {
			t.Errorf("verifier %q for the challenge %q: %v", verifier, challenge, err)
		}
		if own := challengeOf(verifier); len(verifier) >= 43 && len(verifier) <= 128 && unreserved.MatchString(verifier) {
			if err := checkVerifier(own, verifier); err != nil {
				t.Errorf("verifier %q for its own challenge: %v", verifier, err)
			}
			if err := checkChallenge(&clientcfg.Client{Public: true}, own, "S256"); err != nil {
				t.Errorf("its challenge %q: %v", own, err)
			}
		}
	})
}

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
		check.Equal(t, name, redirectMatches(tc.registered, tc.presented), tc.want)
	}
}

func FuzzRedirectMatches(f *testing.F) {
	f.Add("http://127.0.0.1:1234/cb")
	f.Add("http://[::1]:1234/cb")
	f.Add("http://127.0.0.1:1234@evil.com/cb")
	for _, uri := range []string{
		"https://evilshop.example.com/callback", exampleCallback + "/", exampleCallback + "?x=1", exampleCallback + "#x",
		"https://shop.example.com:8443/callback", "http://shop.example.com/callback", "https://shop.example.com@evil.com/callback",
		"HTTPS://shop.example.com/callback", "https://shop.example.com/callback/../evil", " " + exampleCallback, "javascript:alert(1)", "//evil.com",
	} {
		f.Add(uri)
	}
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
