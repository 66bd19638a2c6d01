package clientcfg_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict/fielderr"
)

// FuzzStoredValue: a value read from a store can be written and read back unchanged.
func FuzzStoredValue(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"mode":"off","changed":12}`, `{"trusted":true,"note":"x"}`, `{"user":[{"name":"a","requests":1,"window":"1s"}],"hide_headers":null}`,
		`{"client":[{"name":"contract","requests":10,"window":"10m","strict":true,"lease_wait":"100ms"}]}`,
		`{"user":[{"requests":4,"grants":["refresh_token"]}],"source":[{"name":"per-address","requests":3}]}`,
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
		change, err := clientcfg.SetTarget(clientcfg.PolicyTarget("shop"), &own)
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
