package clientcfg_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict/fielderr"
)

// FuzzRedirectURI: every URI that can be registered leads to https, a loopback address or an app.
func FuzzRedirectURI(f *testing.F) {
	for _, seed := range []string{
		"https://app.example/cb?tenant=a%20b", "http://127.0.0.1:0/cb", "http://[::1]:7777/cb", "com.example.app:/cb", "javascript:alert(1)",
		"https://user@app.example/", "https://*.example/", "http://127.0.0.1.evil.example/", "https:///cb", "https://app.example/#", "data:text/html,x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if clientcfg.ValidateRedirectURI(raw) != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || strings.ContainsAny(raw, "# \r\n\t\"<>\\") || u.User != nil {
			t.Fatalf("%q is accepted: %v", raw, err)
		}
		loopback := u.Scheme == "http" && clientcfg.IsLoopback(u.Hostname())
		if u.Scheme != "https" && !loopback && !strings.Contains(u.Scheme, ".") {
			t.Errorf("%q is accepted", raw)
		}
		if u.Hostname() == "" && !strings.Contains(u.Scheme, ".") {
			t.Errorf("%q names no host", raw)
		}
	})
}

// FuzzStoredValue: a value read from a store can be written and read back unchanged.
func FuzzStoredValue(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"mode":"off","changed":12}`, `{"trusted":true,"note":"x"}`, `{"user":[{"name":"a","requests":1,"window":"1s"}],"hide_headers":null}`,
		`{"criticality":"critical_plus"}`, `{"unknown":1}`, `[`, `{"note":"a","note":"b"}`, `null`,
	} {
		f.Add([]byte(seed))
	}
	base, err := clientcfg.NewPolicySnapshot(ratelimit.DefaultSettings(), clientcfg.PolicySet{})
	check.OK(f, err)
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := base.Apply(entry(1, clientcfg.Change{Target: "policies/shop", After: value}))
		if err != nil {
			if !errors.Is(err, clientcfg.ErrUnreadable) && fielderr.Of(err) == nil {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		own, set := p.Policy("shop")
		if !set {
			return
		}
		change, err := clientcfg.ChangePolicy("shop", &own)
		if err != nil {
			t.Fatalf("%s was read, and cannot be written: %v", value, err)
		}
		again, err := base.Apply(entry(1, change))
		if err != nil {
			t.Fatalf("%s was read, written as %s, and then not read: %v", value, change.After, err)
		}
		if reread, _ := again.Policy("shop"); !cmp.Equal(own, reread, cmpopts.EquateEmpty()) {
			t.Errorf("%s comes back changed:\n%s", value, cmp.Diff(own, reread))
		}
	})
}
