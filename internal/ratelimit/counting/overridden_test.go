package counting

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestOverriddenDecisions: a decision shows that an override applied.
func TestOverriddenDecisions(t *testing.T) {
	p := override(t, defaults(t), "shop", "ada", perMinute(1))
	c := NewCounters(10)
	for _, tc := range []struct {
		user    string
		outcome ratelimit.Outcome
		of      bool
	}{{"ada", ratelimit.Allowed, true}, {"ada", ratelimit.Denied, true}, {"bob", ratelimit.Allowed, false}, {"", ratelimit.Allowed, false}} {
		d := c.Take(at(epoch), ratelimit.Key{ClientID: "shop", Username: tc.user}, p.For("shop"), 1)
		mustEqual(t, "outcome for "+tc.user, tc.outcome, d.Outcome)
		mustEqual(t, "overridden for "+tc.user, tc.of, d.Overridden)
	}
	d, denies := c.Denies(at(epoch), ratelimit.Key{ClientID: "shop", Username: "ada"}, p.For("shop"))
	mustEqual(t, "denied beforehand", true, denies)
	mustEqual(t, "overridden beforehand", true, d.Overridden)
	mustEqual(t, "refunded", true, c.Refund(at(epoch), at(epoch), ratelimit.Key{ClientID: "shop", Username: "ada"}, p.For("shop"), 1))
}

// TestOverrideKeepsCounts: the counts of a key stay when an override is set or removed, as with any
// change of limits. See [TestMovedLimitIsNotFreed] and [TestChangeDuringExchange].
func TestOverrideKeepsCounts(t *testing.T) {
	sixes := perMinute(6)
	sixes.Frames = 6
	for _, tc := range []struct {
		name  string
		own   []ratelimit.Limit
		after string // outcomes of requests under the override, after four
	}{
		{"higher", []ratelimit.Limit{perMinute(6)}, "allowed allowed denied"},
		{"lower", []ratelimit.Limit{perMinute(3)}, "denied"},
		{"other frames", []ratelimit.Limit{sixes}, "allowed allowed denied"},
		{"one more limit, behind", []ratelimit.Limit{perMinute(6), ratelimit.NewLimit("per-hour", 1, time.Hour)}, "allowed denied"},
		{"one more limit, before, so that its document is another", []ratelimit.Limit{ratelimit.NewLimit("per-hour", 9, time.Hour), perMinute(6)}, "allowed allowed denied"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			whole := edited(t, defaults(t), func(e *ratelimit.CompiledEdit) error {
				return e.SetPolicy("client", &ratelimit.Policy{User: []ratelimit.Limit{perMinute(5)}}, "")
			})
			p := play(t, perMinute(5))
			p.eff = whole.For("client")
			p.take(3, ratelimit.Allowed)
			p.finish(p.begin(), Result{Status: Applied, Read: true, Document: nil})
			p.eff = override(t, whole, "client", "user", tc.own...).For("client")
			used := int64(4)
			for _, want := range strings.Fields(tc.after) {
				d := p.c.Take(p.now, p.k, p.eff, 1)
				check.Equal(t, fmt.Sprint("outcome after ", used), d.Outcome.String(), want)
				if d.Outcome == ratelimit.Allowed {
					used++
				}
			}
			// Back under the limit of all users: five at most.
			p.eff = whole.For("client")
			if used < 5 {
				p.take(1, ratelimit.Allowed)
			}
			p.take(1, ratelimit.Denied)
			other := p.c.Take(p.now, ratelimit.Key{ClientID: "client", Username: "other"}, p.eff, 5)
			mustEqual(t, "outcome for another user", ratelimit.Allowed, other.Outcome)
		})
	}
}

// TestOverrideAllocatesNothing: neither for a user with an override nor for one without.
func TestOverrideAllocatesNothing(t *testing.T) {
	p := override(t, defaults(t), "shop", "ada", perMinute(ratelimit.MaxRequests))
	c := NewCounters(10)
	for _, user := range []string{"ada", "bob", ""} {
		k := ratelimit.Key{ClientID: "shop", Username: user}
		c.Take(at(epoch), k, p.For("shop"), 1)
		if n := testing.AllocsPerRun(100, func() { c.Take(at(epoch), k, p.For("shop"), 1) }); n > 0 {
			t.Errorf("%v allocations for %q", n, user)
		}
	}
}
