package config

import (
	"strings"
	"testing"
)

// TestTokenPathRefused: what --check-config accepts, the gateway starts with.
func TestTokenPathRefused(t *testing.T) {
	for _, path := range []string{"token", "/token/", "/token?x", "/%74oken", "/realm*/token"} {
		_, err := Load(Sources{Environ: []string{"OAUTH_UPSTREAM=https://idp.example", "OAUTH_TOKEN_PATH=/a/*/b," + path}})
		if want := `gateway.token_path[1]: "` + path + `": want a clean path`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load() = %v, want %q", err, want)
		}
	}
}

// TestUpstreamOfItself: a request would go round for ever.
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

// TestSubjectClaimRefused: what --check-config accepts, the gateway starts with.
func TestSubjectClaimRefused(t *testing.T) {
	for _, claim := range []string{" sub", strings.Repeat("x", 256)} {
		_, err := Load(Sources{Environ: []string{"OAUTH_UPSTREAM=https://idp.example", "OAUTH_TOKEN_PATH=/token", "OAUTH_SUBJECT_CLAIM=" + claim}})
		if err == nil || !strings.Contains(err.Error(), "gateway.subject_claim") {
			t.Errorf("a claim %q: Load() = %v", claim, err)
		}
	}
}
