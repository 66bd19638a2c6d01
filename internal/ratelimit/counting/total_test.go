package counting

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// usersTotal returns limits of n requests for each user of a client, and of total requests for all
// users together.
func usersTotal(tb testing.TB, n, total int64) *ratelimit.Effective {
	tb.Helper()
	return withTotal(tb, ratelimit.NewLimit("per-user", n, time.Minute), ratelimit.NewLimit("all-users", total, time.Minute))
}

// withTotal returns limits with one limit for each user and a total.
func withTotal(tb testing.TB, user ratelimit.Limit, total ...ratelimit.Limit) *ratelimit.Effective {
	tb.Helper()
	p, err := ratelimit.Compile(ratelimit.Settings{
		Mode: ratelimit.Enforce, CanaryPercent: 100,
		Default: ratelimit.Policy{User: []ratelimit.Limit{user}, Client: []ratelimit.Limit{user}, Total: total},
	})
	check.OK(tb, err)
	return p.For("client")
}

// counted returns the requests that a key counts under its first limit.
func counted(c *Counters, now time.Time, k ratelimit.Key) int64 {
	for _, u := range c.Usage(now, k) {
		return u.Known + u.Unflushed
	}
	return 0
}

// TestTotal: all users of a client and the client itself count against the total. A request that
// either limit denies counts against neither.
func TestTotal(t *testing.T) {
	c, e := NewCounters(0), usersTotal(t, 3, 5)
	ann, bob, itself := ratelimit.Key{ClientID: "client", Username: "ann"}, ratelimit.Key{ClientID: "client", Username: "bob"}, ratelimit.Key{ClientID: "client", Username: ""}
	mustAdmit(t, 3, c, at(epoch), ann, e)
	d := c.Take(at(epoch), ann, e, 1)
	check.Equal(t, "denied by the limit of the user", d.OverTotal(), false)
	check.Equal(t, "violated", strings.Join(d.Violated(), ","), "per-user")
	check.Equal(t, "total", counted(c, at(epoch), ann.Total()), int64(3))
	mustAdmit(t, 1, c, at(epoch), itself, usersTotal(t, 1, 5))
	d = c.Take(at(epoch), bob, e, 1)
	check.Equal(t, "outcome", d.Outcome, ratelimit.Allowed)
	check.Equal(t, "the limit with the smallest share left is of the total", d.OverTotal(), true)
	_, fields := d.Headers()
	check.Equal(t, "RateLimit", fields, `"per-user";r=2;t=57, "all-users";r=0;t=57`)
	d = c.Take(at(epoch), bob, e, 1)
	check.Equal(t, "denied by the total", d.OverTotal(), true)
	check.Equal(t, "violated", strings.Join(d.Violated(), ","), "all-users")
	check.Equal(t, "bob", counted(c, at(epoch), bob), int64(1))
	check.Equal(t, "total", counted(c, at(epoch), ann.Total()), int64(5))
	d = c.Take(at(epoch), ratelimit.Key{ClientID: "other", Username: "bob"}, e, 1)
	check.Equal(t, "another client", d.Outcome, ratelimit.Allowed)
	policy, _ := d.Headers()
	check.Equal(t, "RateLimit-Policy", policy, `"per-user";q=3;w=60, "all-users";q=5;w=60`)
	check.Equal(t, "keys", len(c.ClientUsage(at(epoch), "client", 10)), 4)
	check.Equal(t, "reset", c.Reset(ann.Total()), true)
	mustAdmit(t, 2, c, at(epoch), bob, e)
}

// sums returns the counts under the first limits of all users and of all totals, at one moment.
func sums(c *Counters) (users, totals int64) {
	users, others := sumsByRange(c)
	return users, others[1]
}

// TestTotalAllocatesNothing on the warm path, admitted or denied.
func TestTotalAllocatesNothing(t *testing.T) {
	c, k := NewCounters(0), ratelimit.Key{ClientID: "client", Username: "user"}
	attach(c)
	for _, e := range []*ratelimit.Effective{usersTotal(t, ratelimit.MaxRequests, ratelimit.MaxRequests), usersTotal(t, 1, 1)} {
		c.Take(at(epoch), k, e, 1)
		settle(c, at(epoch))
		check.Equal(t, "allocations", testing.AllocsPerRun(100, func() { c.Take(at(epoch), k, e, 1) }), 0.0)
	}
}

// TestTotalHasRoom: in a flood of names every total still gets its own counter. If there is no room
// for the key of a user, the total does not count the denied request.
func TestTotalHasRoom(t *testing.T) {
	c, e := NewCounters(64), usersTotal(t, 1, 500)
	var admitted int64
	for i := range 1000 {
		if d := c.Take(at(epoch), ratelimit.Key{ClientID: "flood-" + strconv.Itoa(i%3), Username: strconv.Itoa(i)}, e, 1); d.Outcome == ratelimit.Allowed {
			admitted++
		}
	}
	var total int64
	for i := range 3 {
		total += counted(c, at(epoch), ratelimit.Key{ClientID: "flood-" + strconv.Itoa(i)}.Total())
	}
	check.Equal(t, "total", total, admitted)
	users, totals := sums(c)
	check.Equal(t, "in shards of totals", totals, total)
	check.Equal(t, "more than the keys in memory have, some of which made room", users <= total, true)
}

// TestTotalOfAStrictList: a request that waits for permits of its user is decided together with the
// total when it gets them.
func TestTotalOfAStrictList(t *testing.T) {
	p := leaseFrom(t, strictly(10, time.Minute))
	p.eff = &ratelimit.Effective{User: p.eff.User, Client: p.eff.Client, Total: ratelimit.NewLimits([]ratelimit.Limit{ratelimit.NewLimit("all", 2, time.Minute)}), Mode: ratelimit.Enforce}
	p.take(2, ratelimit.Denied) // for lack of permits
	check.Equal(t, "total", counted(p.c, p.now, p.k.Total()), int64(0))
	p.exchange()
	p.take(2, ratelimit.Allowed)
	d := p.c.Take(p.now, p.k, p.eff, 1)
	check.Equal(t, "over the total", d.OverTotal(), true)
	check.Equal(t, "for want of permits", d.Outage, false)
	check.Equal(t, "violated", strings.Join(d.Violated(), ","), "all")
	check.Equal(t, "over a limit of its own", d.ThroughLimit(), false)

	synctest.Test(t, func(t *testing.T) {
		q := leaseFrom(t, strictly(10, time.Minute))
		q.eff = &ratelimit.Effective{User: q.eff.User, Client: q.eff.Client, Total: ratelimit.NewLimits([]ratelimit.Limit{ratelimit.NewLimit("all", 2, time.Minute)}), Mode: ratelimit.Enforce}
		outcomes := make(chan ratelimit.Outcome)
		for range 3 {
			go func() {
				d, _ := q.c.Await(context.Background(), q.now, q.k, q.eff, 1)
				outcomes <- d.Outcome
			}()
		}
		synctest.Wait()
		q.exchange()
		got := []ratelimit.Outcome{<-outcomes, <-outcomes, <-outcomes}
		slices.Sort(got)
		check.Equal(t, "outcomes", slices.Equal(got, []ratelimit.Outcome{ratelimit.Allowed, ratelimit.Allowed, ratelimit.Denied}), true)
		check.Equal(t, "total", counted(q.c, q.now, q.k.Total()), int64(2))
	})
}

// TestTotalInPlacesOfOthers: the total comes from the policy, or else from the tier, or else from
// the default. An override of a user does not replace it.
func TestTotalInPlacesOfOthers(t *testing.T) {
	user := []ratelimit.Limit{ratelimit.NewLimit("u", 1, time.Minute)}
	total := func(n int64) []ratelimit.Limit { return []ratelimit.Limit{ratelimit.NewLimit("all", n, time.Minute)} }
	edit := (&ratelimit.Compiled{}).Edit()
	check.OK(t, edit.SetCommon(ratelimit.Settings{Mode: ratelimit.Enforce, CanaryPercent: 100, Default: ratelimit.Policy{User: user, Client: user, Total: total(10)}}))
	check.OK(t, edit.SetTier("gold", &ratelimit.Policy{Total: total(20)}))
	check.OK(t, edit.SetPolicy("own", &ratelimit.Policy{Total: total(30)}, "gold"))
	check.OK(t, edit.SetPolicy("of-tier", &ratelimit.Policy{}, "gold"))
	check.OK(t, edit.SetOverride("own", "ann", []ratelimit.Limit{ratelimit.NewLimit("ann", 25, time.Minute)}))
	p := edit.Compiled()
	for id, want := range map[string]int64{"own": 30, "of-tier": 20, "neither": 10} {
		check.Equal(t, id, p.For(id).For(ratelimit.Key{ClientID: id}.Total()).All()[0].Requests, want)
	}
	c := NewCounters(0)
	mustAdmit(t, 25, c, at(epoch), ratelimit.Key{ClientID: "own", Username: "ann"}, p.For("own"))
	check.Equal(t, "total", counted(c, at(epoch), ratelimit.Key{ClientID: "own"}.Total()), int64(25))
}
