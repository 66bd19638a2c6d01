package ratelimit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/strict/fielderr"
)

// override returns p with limits for one user. No limits remove the override.
func override(tb testing.TB, p *Compiled, clientID, username string, limits ...Limit) *Compiled {
	tb.Helper()
	return edited(tb, p, func(e *CompiledEdit) error { return e.SetOverride(clientID, username, limits) })
}

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
		return firstOf(err, e.SetPolicy("bare", &Policy{}, "gold"))
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
		mustEqual(t, tc.user+" at "+tc.client, tc.want, requests(p, tc.client, tc.user))
	}
	mustEqual(t, "ada before", "20", requests(base, "bare", "ada"))
	mustEqual(t, "clients with a policy", 1, p.Len())
	for id := range p.Clients() {
		mustEqual(t, "client with a policy", "bare", id)
	}
	mustEqual(t, "users with an override", 1, p.For("bare").Overridden())
	mustEqual(t, "users with an override elsewhere", 0, p.For("other").Overridden())
	for username, ls := range p.For("bare").Overrides() {
		mustEqual(t, username, "ada2", username+fmt.Sprint(len(ls.All())))
	}
	for range p.For("other").Overrides() {
		t.Error("an override of a client that has none")
	}

	p = edited(t, p, func(e *CompiledEdit) error {
		return firstOf(e.SetPolicy("bare", &Policy{User: []Limit{perMinute(30)}}, ""), e.SetPolicy("none", &Policy{Mode: Off}, ""))
	})
	mustEqual(t, "ada after a change of the policy", "5 6", requests(p, "bare", "ada"))
	mustEqual(t, "bob after a change of the policy", "30", requests(p, "bare", "bob"))
	p = edited(t, p, func(e *CompiledEdit) error { return e.SetPolicy("bare", nil, "") })
	mustEqual(t, "ada without a policy", "5 6", requests(p, "bare", "ada"))
	p = override(t, p, "bare", "ada")
	mustEqual(t, "ada without an override", "100", requests(p, "bare", "ada"))
	if p.For("bare") != p.For("other") {
		t.Error("a client with nothing of its own is not like the others")
	}
	if p = override(t, base, "bare", "ada"); p.For("bare") != base.For("bare") {
		t.Error("taking back what is not there changed something")
	}
}

// TestOverriddenDecisions: a decision shows that an override applied.
func TestOverriddenDecisions(t *testing.T) {
	p := override(t, defaults(t), "shop", "ada", perMinute(1))
	c := NewCounters(10)
	for _, tc := range []struct {
		user    string
		outcome Outcome
		of      bool
	}{{"ada", Allowed, true}, {"ada", Denied, true}, {"bob", Allowed, false}, {"", Allowed, false}} {
		d := c.Take(at(epoch), Key{"shop", tc.user}, p.For("shop"), 1)
		mustEqual(t, "outcome for "+tc.user, tc.outcome, d.Outcome)
		mustEqual(t, "overridden for "+tc.user, tc.of, d.Overridden)
	}
	d, denies := c.Denies(at(epoch), Key{"shop", "ada"}, p.For("shop"))
	mustEqual(t, "denied beforehand", true, denies)
	mustEqual(t, "overridden beforehand", true, d.Overridden)
	mustEqual(t, "refunded", true, c.Refund(at(epoch), at(epoch), Key{"shop", "ada"}, p.For("shop"), 1))
}

// TestOverrideOfALongName: overrides apply to names that are counted under a digest.
func TestOverrideOfALongName(t *testing.T) {
	client, user := strings.Repeat("c", 128), strings.Repeat("u", 128)
	p := override(t, defaults(t), client, user, perMinute(1))
	c := NewCounters(10)
	c.Take(at(epoch), Key{client, user}, p.For(client), 1)
	mustEqual(t, "outcome", Denied, c.Take(at(epoch), Key{client, user}, p.For(client), 1).Outcome)
	mustEqual(t, "limits", "1", requests(p, client, user))
}

// TestOverrideKeepsCounts: the counts of a key stay when an override is set or removed, as with any
// change of limits. See [TestMovedLimitIsNotFreed] and [TestChangeDuringExchange].
func TestOverrideKeepsCounts(t *testing.T) {
	sixes := perMinute(6)
	sixes.Frames = 6
	for _, tc := range []struct {
		name  string
		own   []Limit
		after string // outcomes of requests under the override, after four
	}{
		{"higher", []Limit{perMinute(6)}, "allowed allowed denied"},
		{"lower", []Limit{perMinute(3)}, "denied"},
		{"other frames", []Limit{sixes}, "allowed allowed denied"},
		{"one more limit, behind", []Limit{perMinute(6), NewLimit("per-hour", 1, time.Hour)}, "allowed denied"},
		{"one more limit, before, so that its document is another", []Limit{NewLimit("per-hour", 9, time.Hour), perMinute(6)}, "allowed allowed denied"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			whole := edited(t, defaults(t), func(e *CompiledEdit) error {
				return e.SetPolicy("client", &Policy{User: []Limit{perMinute(5)}}, "")
			})
			p := play(t, perMinute(5))
			p.eff = whole.For("client")
			p.take(3, Allowed)
			p.finish(p.begin(), Result{Status: Applied, Read: true, Document: nil})
			p.eff = override(t, whole, "client", "user", tc.own...).For("client")
			used := int64(4)
			for _, want := range strings.Fields(tc.after) {
				d := p.c.Take(p.now, p.k, p.eff, 1)
				if d.Outcome.String() != want {
					t.Fatalf("after %d requests: %s, want %s", used, d.Outcome, want)
				}
				if d.Outcome == Allowed {
					used++
				}
			}
			// Back under the limit of all users: five at most.
			p.eff = whole.For("client")
			if used < 5 {
				p.take(1, Allowed)
			}
			p.take(1, Denied)
			other := p.c.Take(p.now, Key{"client", "other"}, p.eff, 5)
			mustEqual(t, "outcome for another user", Allowed, other.Outcome)
		})
	}
}

// TestOverrideDuringExchange: counts survive when an override is set during an exchange.
func TestOverrideDuringExchange(t *testing.T) {
	minutes := perMinute(100)
	shorter := perMinute(200)
	shorter.Frames = 6
	whole := edited(t, defaults(t), func(e *CompiledEdit) error {
		return e.SetPolicy("client", &Policy{User: []Limit{minutes}}, "")
	})
	for _, own := range [][]Limit{{perMinute(50)}, {shorter}, {NewLimit("per-second", 50, time.Second), minutes}} {
		t.Run(fmt.Sprint(len(own), own[0].Frames, own[0].Requests), func(t *testing.T) {
			p := play(t, minutes)
			p.eff = whole.For("client")
			p.read(&Document{Version: 1, Etag: 1, Frame: 60_000, Frames: frame(60_000, 10)})
			task := p.begin()
			p.take(1, Allowed)
			p.eff = override(t, whole, "client", "user", own...).For("client")
			p.take(1, Allowed)
			p.finish(task, Result{Status: Applied})
			p.take(1, Allowed)
			for _, u := range p.c.Usage(p.now, p.k) {
				if u.Limit.Name == "per-minute" && u.Estimate != 14 {
					t.Errorf("%+v, want an estimate of 14", u)
				}
			}
		})
	}
}

func TestOverrideProblems(t *testing.T) {
	err := defaults(t).Edit().SetOverride("shop", "ada", []Limit{perMinute(0), perMinute(1)})
	var paths []string
	for _, e := range fielderr.Of(err) {
		paths = append(paths, e.Path)
	}
	mustEqual(t, "problems", `overrides["shop ada"].user[0].requests overrides["shop ada"].user[1].name`, strings.Join(paths, " "))
}

// TestOverrideAllocatesNothing: neither for a user with an override nor for one without.
func TestOverrideAllocatesNothing(t *testing.T) {
	p := override(t, defaults(t), "shop", "ada", perMinute(MaxRequests))
	c := NewCounters(10)
	for _, user := range []string{"ada", "bob", ""} {
		k := Key{"shop", user}
		c.Take(at(epoch), k, p.For("shop"), 1)
		if n := testing.AllocsPerRun(100, func() { c.Take(at(epoch), k, p.For("shop"), 1) }); n > 0 {
			t.Errorf("%v allocations for %q", n, user)
		}
	}
}

// BenchmarkTakeOverridden measures one decision for a client with some overridden users.
func BenchmarkTakeOverridden(b *testing.B) {
	large := []Limit{perMinute(MaxRequests)}
	p := edited(b, defaults(b), func(e *CompiledEdit) error {
		err := e.SetPolicy("shop", &Policy{User: large}, "")
		for i := range 1000 {
			err = firstOf(err, e.SetOverride("shop", fmt.Sprint("user-", i), []Limit{perMinute(MaxRequests - int64(i) - 1)}))
		}
		return firstOf(err, e.SetPolicy("plain", &Policy{User: large}, ""))
	})
	c := NewCounters(10)
	for _, k := range []Key{{"plain", "user-7"}, {"shop", "other"}, {"shop", "user-7"}} {
		b.Run(k.ClientID+"/"+k.Username, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Take(at(epoch), k, p.For(k.ClientID), 1)
			}
		})
	}
}

// BenchmarkTierChange measures a change of a tier that 100,000 clients have, followed by one
// lookup.
func BenchmarkTierChange(b *testing.B) {
	p := edited(b, defaults(b), func(e *CompiledEdit) error {
		err := e.SetTier("gold", &Policy{User: []Limit{perMinute(7)}})
		for i := range 100_000 {
			err = firstOf(err, e.SetPolicy(fmt.Sprint("client-", i), &Policy{}, "gold"))
		}
		return err
	})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p = edited(b, p, func(e *CompiledEdit) error {
			return e.SetTier("gold", &Policy{User: []Limit{perMinute(int64(8 + i%100))}})
		})
		p.For("client-4711")
	}
}
