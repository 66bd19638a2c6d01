package grants

import (
	"slices"
	"strings"
	"testing"

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
