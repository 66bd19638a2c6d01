package ratelimit

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/strict/fielderr"
)

// requests lists the limits of a key by their numbers of requests.
func requests(p *Compiled, clientID, username string) string {
	var out []string
	for _, l := range p.For(clientID).For(Key{clientID, username}).All() {
		out = append(out, fmt.Sprint(l.Requests))
	}
	return strings.Join(out, " ")
}

// TestOverrideIsOfOneUser: it replaces only the list for users, from wherever that list comes.
func TestOverrideIsOfOneUser(t *testing.T) {
	base := edited(t, defaults(t), func(e *CompiledEdit) error {
		err := e.SetTier("gold", &Policy{User: []Limit{perMinute(20)}})
		return cmp.Or(err, e.SetPolicy("bare", &Policy{}, "gold"))
	})
	p := override(t, override(t, base, "bare", "ada", perMinute(5), NewLimit("per-hour", 6, time.Hour)), "none", "ada", perMinute(7))
	for _, tc := range []struct{ client, user, want string }{
		{"bare", "ada", "5 6"},
		{"bare", "bob", "20"},
		{"bare", "", "100"},
		{"none", "ada", "7"},
		{"none", "bob", "100"},
		{"none", "", "100"},
		{"other", "ada", "100"},
	} {
		check.Equal(t, tc.user+" at "+tc.client, requests(p, tc.client, tc.user), tc.want)
	}
	check.Equal(t, "ada before", requests(base, "bare", "ada"), "20")
	check.Equal(t, "clients with a policy", p.Len(), 1)
	for id := range p.Clients() {
		check.Equal(t, "client with a policy", id, "bare")
	}
	check.Equal(t, "users with an override", p.For("bare").Overridden(), 1)
	check.Equal(t, "users with an override elsewhere", p.For("other").Overridden(), 0)
	for username, ls := range p.For("bare").Overrides() {
		check.Equal(t, username, username+fmt.Sprint(len(ls.All())), "ada2")
	}
	for range p.For("other").Overrides() {
		t.Error("an override of a client that has none")
	}

	p = edited(t, p, func(e *CompiledEdit) error {
		return cmp.Or(e.SetPolicy("bare", &Policy{User: []Limit{perMinute(30)}}, ""), e.SetPolicy("none", &Policy{Mode: Off}, ""))
	})
	check.Equal(t, "ada after a change of the policy", requests(p, "bare", "ada"), "5 6")
	check.Equal(t, "bob after a change of the policy", requests(p, "bare", "bob"), "30")
	p = edited(t, p, func(e *CompiledEdit) error { return e.SetPolicy("bare", nil, "") })
	check.Equal(t, "ada without a policy", requests(p, "bare", "ada"), "5 6")
	p = override(t, p, "bare", "ada")
	check.Equal(t, "ada without an override", requests(p, "bare", "ada"), "100")
	if p.For("bare") != p.For("other") {
		t.Error("a client with nothing of its own is not like the others")
	}
	if p = override(t, base, "bare", "ada"); *p.For("bare") != *base.For("bare") {
		t.Error("taking back what is not there changed something")
	}
}

func TestOverrideProblems(t *testing.T) {
	err := defaults(t).Edit().SetOverride("shop", "ada", []Limit{perMinute(0), perMinute(1)})
	var paths []string
	for _, e := range fielderr.Of(err) {
		paths = append(paths, e.Path)
	}
	check.Equal(t, "problems", strings.Join(paths, " "), `overrides["shop ada"].user[0].requests overrides["shop ada"].user[1].name`)
}
