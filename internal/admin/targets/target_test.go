package targets

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/strict"
)

// FuzzPolicy: the response is always an error, or a policy that stays the same when its shown form
// is sent back.
//
// Attack (input): Hostile admin requests. Values are bounded and survive a round trip. Also
// adminapi.FuzzNewClient.
func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"user":[{"name":"per-minute","requests":10,"window":"60s"}]}`, `{"criticality":"sheddable_plus","trusted":true}`, `{"mode":"off","trusted":true,"hide_headers":true,"note":"x","client":[{"name":"a","frames":6}]}`,
		`{"user":[{"requests":5,"on_outage":"deny","grants":["password"]}],"client":[{"strict":true,"lease_wait":"70ms"}]}`,
		`{"user":[{}],"total":[{"name":"t","requests":500}],"source":[{"name":"s"}],"max_wait":"2s","max_waiting":3,"over_limit":"deny","ban":{"denials":3}}`,
		`{"user":[{"requests":1e3,"window":"1.5s","algorithm":"fixed","soft_ratio":0.5}]}`, `{"a":1,"a":2}`, `[[[`, `{"user":[{"window":"-1s"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := strict.ParseJSON(b)
		if err != nil {
			return
		}
		p, err := adminapi.ReadPolicy("shop", v)
		if err != nil {
			return
		}
		shown, err := json.Marshal(showPolicy("shop", &p))
		check.OK(t, err)
		v, err = strict.ParseJSON(shown)
		check.OK(t, err)
		again, err := adminapi.ReadPolicy("shop", v)
		if err != nil {
			t.Fatalf("%s was accepted, and then not: %v", shown, err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Errorf("%s came back changed:\n%s", shown, diff)
		}
	})
}

// TestParse: every target that can be changed is found by its name in the trail.
func TestParse(t *testing.T) {
	for _, name := range []string{
		clientcfg.SettingsTarget, clientcfg.PolicyTarget("a/b%2F:c"), clientcfg.CandidateTarget("_default"),
		"tiers/a/b", clientcfg.OverrideTarget("shop", "ada b"),
	} {
		got, ok := Parse(name)
		check.Equal(t, name, got.Name(), name)
		check.Equal(t, name+" is one", ok, true)
	}
	for _, name := range []string{"", "settings/x", "policies/", "tiers/", "tiers/a b", "overrides/shop", "clients/shop/counters", "users/ada", "x/y"} {
		if _, ok := Parse(name); ok {
			t.Errorf("%q is a target", name)
		}
	}
}
