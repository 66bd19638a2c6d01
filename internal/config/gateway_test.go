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
