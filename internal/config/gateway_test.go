package config

import (
	"strings"
	"testing"

	"oauth-server/internal/check"
)

const upstreamEnv = "OAUTH_UPSTREAM=https://idp.example OAUTH_TOKEN_PATH=/token "

// TestGatewayRefused: the gateway starts with every setting that --check-config accepts.
func TestGatewayRefused(t *testing.T) {
	refused := map[string]string{
		"OAUTH_SUBJECT_CLAIM= sub": "gateway.subject_claim", "OAUTH_SUBJECT_CLAIM=" + strings.Repeat("x", 256): "gateway.subject_claim",
	}
	for _, path := range []string{"token", "/token/", "/token?x", "/%74oken", "/realm*/token"} {
		refused["OAUTH_TOKEN_PATH=/a/*/b,"+path] = `gateway.token_path[1]: "` + path + `": must be a clean path`
	}
	for variable, want := range refused {
		_, err := Load(Sources{Environ: append(strings.Fields(upstreamEnv), variable)})
		check.ErrorSays(t, err, want)
	}
}

// TestUpstreamOfItself: a request would loop forever.
func TestUpstreamOfItself(t *testing.T) {
	for listen, upstreams := range map[string]map[string]bool{
		"127.0.0.1:9096": {"http://127.0.0.1:9096": true, "http://localhost:9096": true, "http://127.0.0.1:9097": false, "https://idp.example:9096": false},
		":9096":          {"http://127.0.0.1:9096": true, "http://[::1]:9096": true, "https://idp.example:9096": false},
		"0.0.0.0:80":     {"http://127.0.0.1": true, "https://127.0.0.1": false},
		"192.0.2.1:443":  {"https://192.0.2.1": true, "https://192.0.2.2": false, "http://127.0.0.1:443": false},
		"127.0.0.1:0":    {"http://127.0.0.1:9096": false},
	} {
		for upstream, itself := range upstreams {
			_, err := Load(Sources{Environ: []string{"OAUTH_UPSTREAM=" + upstream, "OAUTH_TOKEN_PATH=/token", "OAUTH_LISTEN=" + listen}})
			if said := err != nil && strings.Contains(err.Error(), "is this gateway itself"); said != itself {
				t.Errorf("listen on %s, upstream %s: Load() = %v", listen, upstream, err)
			}
		}
	}
}

// TestPublicURL: it is an origin, and has an effect only if requests are forwarded.
func TestPublicURL(t *testing.T) {
	const notURL, notOrigin = "is not a URL such as https://auth.example.com", "gateway.public_url: must be only a scheme and a host"
	for value, want := range map[string]string{
		"https://auth.example.com": "", "https://auth.example.com/": "", "http://[::1]:9096": "", "http://auth.example.com:8080": "",
		"auth.example.com": notURL, "//auth.example.com": notURL, "ftp://auth.example.com": notURL, "https://:443": notURL, "https://a:0": notURL,
		"https://a:65536": notURL, "https://bücher.example": notURL, "https:auth.example.com": notURL,
		"https://ada@auth.example.com": notOrigin, "https://auth.example.com/auth": notOrigin, "https://auth.example.com?": notOrigin,
		"https://auth.example.com#": notOrigin,
	} {
		_, err := Load(Sources{Environ: append(strings.Fields(upstreamEnv), "OAUTH_PUBLIC_URL="+value)})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Load() = %v, want %q", value, err, want)
		}
	}
	for _, environ := range []string{"OAUTH_JUDGE=true", "OAUTH_ISSUER=https://auth.example.com"} {
		_, err := Load(Sources{Environ: []string{environ, "OAUTH_PUBLIC_URL=https://auth.example.com"}})
		check.ErrorSays(t, err, "gateway.public_url: needs upstream")
	}
}
