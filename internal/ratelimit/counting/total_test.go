package counting

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/ratelimit"

	"pgregory.net/rapid"

	"oauth-server/internal/check"
)

// usersTotal returns limits of n requests for each user of a client, and of total requests for all
// users together.
func usersTotal(tb testing.TB, n, total int64) *ratelimit.Effective {
	tb.Helper()
	return withTotal(tb, ratelimit.NewLimit("per-user", n, time.Minute), ratelimit.NewLimit("all-users", total, time.Minute))
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

// TestTotalOfLongNames: keys that are counted under digests also count against the total of their
// client.
func TestTotalOfLongNames(t *testing.T) {
	for _, client := range []int{1, 8, 100, 127, 128, 249, 250, 300} {
		c, e := NewCounters(0), usersTotal(t, 3, 4)
		id := strings.Repeat("c", client)
		for _, user := range []int{1, 9, 128, 200} {
			c.Take(at(epoch), ratelimit.Key{ClientID: id, Username: strings.Repeat("u", user)}, e, 1)
		}
		check.Equal(t, fmt.Sprintf("total of %d letters", client), counted(c, at(epoch), ratelimit.Key{ClientID: id}.Total()), int64(4))
	}
}

// TestTotalDecidesAsBothAlone: a request is admitted if each of the two lists would admit it alone.
// Otherwise it waits for the one that takes longer.
func TestTotalDecidesAsBothAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		user, total := drawLimits(t), []ratelimit.Limit{drawLimit(t, "c")}
		for i := range user {
			user[i].Requests = min(user[i].Requests, total[0].Requests)
		}
		p := ratelimit.Policy{User: user, Client: user, Total: total}
		together, err := ratelimit.Compile(ratelimit.Settings{Mode: ratelimit.Enforce, CanaryPercent: 100, Default: p})
		if err != nil {
			t.Skip(err)
		}
		c, alone, ls, whole := NewCounters(0), NewCounters(0), ratelimit.NewLimits(user), ratelimit.NewLimits(total)
		forUser, forTotal := &ratelimit.Effective{User: ls, Client: ls, Mode: ratelimit.Enforce}, &ratelimit.Effective{User: whole, Client: whole, Mode: ratelimit.Enforce}
		now := int64(epoch)
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now += drawStep(t, total[0].Window)
			k := ratelimit.Key{ClientID: "client", Username: "user-" + strconv.Itoa(rapid.IntRange(0, 2).Draw(t, "user"))}
			n := rapid.Int64Range(1, 2).Draw(t, "n")
			early, denies := c.Denies(at(now), k, together.For("client"))
			d := c.Take(at(now), k, together.For("client"), n)
			one := alone.Take(at(now), k, forUser, n)
			if one.Outcome == ratelimit.Allowed {
				if two := alone.Take(at(now), ratelimit.Key{ClientID: "client"}, forTotal, n); two.Outcome == ratelimit.Denied {
					alone.Refund(at(now), at(now), k, forUser, n)
					one = two
				}
			}
			mustEqual(t, "outcome", one.Outcome, d.Outcome)
			if n == 1 {
				mustEqual(t, "denied early", d.Outcome == ratelimit.Denied, denies)
				mustEqual(t, "RetryAfter of Denies", d.RetryAfter, early.RetryAfter)
			}
			if d.RetryAfter < one.RetryAfter {
				t.Fatalf("waits for %v, alone for %v", d.RetryAfter, one.RetryAfter)
			}
		}
	})
}

// TestTotalIsOneStep: while many goroutines take, refund and flush, a total always equals the sum
// of its users.
func TestTotalIsOneStep(t *testing.T) {
	for _, limits := range []int{1, 2} {
		user := []ratelimit.Limit{ratelimit.NewLimit("per-user", 400, time.Minute), ratelimit.NewLimit("per-hour", 500, time.Hour)}[:limits]
		p, err := ratelimit.Compile(ratelimit.Settings{Mode: ratelimit.Enforce, CanaryPercent: 100, Default: ratelimit.Policy{
			User: user, Client: user, Total: []ratelimit.Limit{ratelimit.NewLimit("all-users", 1000, time.Minute)},
		}})
		check.OK(t, err)
		c, e := NewCounters(0), p.For("client")
		attach(c)
		stop := make(chan struct{})
		var workers, watcher sync.WaitGroup
		watcher.Go(func() {
			for {
				settle(c, at(epoch))
				if users, total := sums(c); users != total {
					t.Errorf("%d of users, %d of the total", users, total)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
		for w := range 8 {
			workers.Go(func() {
				for i := range 400 {
					k := ratelimit.Key{ClientID: "client", Username: "user-" + strconv.Itoa((w+i)%4)}
					if d := c.Take(at(epoch), k, e, 1); d.Outcome == ratelimit.Allowed && i%8 == 0 {
						c.Refund(at(epoch), at(epoch), k, e, 1)
					}
				}
			})
		}
		workers.Wait()
		for i := range 4 {
			for c.Take(at(epoch), ratelimit.Key{ClientID: "client", Username: "user-" + strconv.Itoa(i)}, e, 1).Outcome == ratelimit.Allowed {
			}
		}
		close(stop)
		watcher.Wait()
		check.Equal(t, "counted", counted(c, at(epoch), ratelimit.Key{ClientID: "client"}.Total()), int64(1000))
	}
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
