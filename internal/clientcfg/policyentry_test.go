package clientcfg_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// The bounds of the decoder are wider than those of a set: the largest set that can be
// stored can be read.
func TestDecodeTheLargestPolicySet(t *testing.T) {
	smallest := make([]ratelimit.Limit, ratelimit.MaxLimits)
	for i := range smallest {
		smallest[i] = ratelimit.Limit{Name: string(rune('a' + i)), Requests: 1, Window: time.Second, Frames: 1, Algorithm: "fixed", SoftRatio: 1, OnOutage: "deny"}
	}
	b, err := json.Marshal(clientcfg.ClientPolicy{Policy: ratelimit.Policy{User: smallest}})
	requireError(t, err, "")
	set := clientcfg.PolicySet{Clients: map[string]clientcfg.ClientPolicy{}}
	for i := range clientcfg.MaxPolicies {
		p := clientcfg.ClientPolicy{}
		if i < (clientcfg.MaxSetSize-200_000)/len(b) {
			p.User = smallest
		}
		set.Clients[fmt.Sprint(i)] = p
	}
	b, err = json.Marshal(set)
	requireError(t, err, "")
	if len(b) > clientcfg.MaxSetSize || len(b) < clientcfg.MaxSetSize*9/10 {
		t.Fatalf("the set has %d bytes, want nearly %d", len(b), clientcfg.MaxSetSize)
	}
	compile(t, set)
	got, err := clientcfg.DecodePolicySet(b)
	requireError(t, err, "")
	if diff := cmp.Diff(set, got); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

// A set that was written by hand: null is an empty policy.
func TestDecodeNull(t *testing.T) {
	set, err := clientcfg.DecodePolicySet([]byte(`{"settings":null,"clients":{"shop":null,"app":{"user":null,"mode":null}},"candidates":null,"resets":null}`))
	requireError(t, err, "")
	want := clientcfg.PolicySet{}.WithPolicy("shop", &clientcfg.ClientPolicy{}).WithPolicy("app", &clientcfg.ClientPolicy{})
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("set (-want +got):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for in, want := range map[string]string{
		`{"version":1,"clients":{"shop":{"burst":5}}}`:    "clients.shop.burst: unknown field",
		`{"version":1,"Clients":{}}`:                      "Clients: unknown field",
		`{"version":1,"clients":{"a":{},"\u0061":{}}}`:    `the name "a" stands twice`,
		`{"version":1} {}`:                                "something follows",
		`{"version":` + strings.Repeat("9", 5000) + `}`:   "version: must be a whole number, not 999",
		`{"version":1,"settings":{"mode":"\ud800"}}`:      "half of a surrogate pair",
		`{"version":1,"resets":[{"at":"yesterday"}]}`:     "resets[0].at",
		`{"version":1,"clients":{"shop":{"user":[5]}}}`:   "clients.shop.user[0]: must be an object, not 5",
		`{"version":1,"clients":{"a.b":{"trusted":"x"}}}`: `clients["a.b"].trusted`,
	} {
		_, err := clientcfg.DecodePolicySet([]byte(in))
		requireError(t, err, want)
		if len(err.Error()) > 500 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	}
}
