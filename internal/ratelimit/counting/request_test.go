package counting

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestGrants: a limit for refreshes neither counts nor denies other grants, and is not shown to
// them. Requests with an unknown grant count everywhere.
func TestGrants(t *testing.T) {
	e := appliedBy(t, ratelimit.Policy{
		User:   []ratelimit.Limit{forGrants(ratelimit.NewLimit("refreshes", 2, time.Minute), ratelimit.GrantRefresh), ratelimit.NewLimit("all", 4, time.Minute)},
		Client: []ratelimit.Limit{ratelimit.NewLimit("itself", 9, time.Minute)},
	})
	c, ann := NewCounters(0), ratelimit.Key{ClientID: "client", Username: "ann"}
	code, refresh := e.ForRequest(ratelimit.GrantCode, ""), e.ForRequest(ratelimit.GrantRefresh, "")
	mustAdmit(t, 2, c, at(epoch), ann, refresh)
	d := c.Take(at(epoch), ann, refresh, 1)
	check.Equal(t, "violated", strings.Join(d.Violated(), " "), "refreshes")
	d = c.Take(at(epoch), ann, code, 1)
	check.Equal(t, "code", d.Outcome, ratelimit.Allowed)
	binding, _ := d.BindingLimit()
	check.Equal(t, "the limit that binds a code", binding.Limit.Name, "all")
	policy, fields := d.Headers()
	check.Equal(t, "RateLimit-Policy", policy, `"all";q=4;w=60`)
	check.Equal(t, "RateLimit", fields, `"all";r=1;t=57`)
	_, denies := c.Denies(at(epoch), ann, code)
	check.Equal(t, "Denies a code", denies, false)
	_, denies = c.Denies(at(epoch), ann, refresh)
	check.Equal(t, "Denies a refresh", denies, true)
	d = c.Take(at(epoch), ann, code, 1)
	check.Equal(t, "the fourth", d.Outcome, ratelimit.Allowed)
	d = c.Take(at(epoch), ann, code, 1)
	check.Equal(t, "violated by a code", strings.Join(d.Violated(), " "), "all")
	check.Equal(t, "refreshes counted", c.Usage(at(epoch), ann)[0].Unflushed, int64(2))

	check.Equal(t, "refund of a code", c.Refund(at(epoch), at(epoch), ann, code, 1), true)
	check.Equal(t, "refreshes after it", c.Usage(at(epoch), ann)[0].Unflushed, int64(2))
	check.Equal(t, "all after it", c.Usage(at(epoch), ann)[1].Unflushed, int64(3))
	d = c.Take(at(epoch), ann, e, 1)
	check.Equal(t, "a request of no known grant", strings.Join(d.Violated(), " "), "refreshes")
	check.Equal(t, "when a code passes", c.Forecast(at(epoch), ann, code).Next(), at(epoch))
	check.Equal(t, "when a refresh passes", c.Forecast(at(epoch), ann, refresh).Next(), at(epoch).Add(c.Take(at(epoch), ann, refresh, 1).RetryAfter))
	check.Equal(t, "when an exchange passes", c.Forecast(at(epoch), ann, e.ForRequest(ratelimit.GrantOf("urn:x:exchange"), "")).Next(), at(epoch))
	check.Equal(t, "what tells no grants apart stays the same", appliedBy(t, ratelimit.DefaultSettings().Default).ForRequest(ratelimit.GrantCode, "").Grant(), ratelimit.Grants(0))
}

// TestNoLimitForTheGrant: a request that no limit counts passes and adds no key.
func TestNoLimitForTheGrant(t *testing.T) {
	e := appliedBy(t, ratelimit.Policy{
		User:   []ratelimit.Limit{forGrants(ratelimit.NewLimit("refreshes", 1, time.Minute), ratelimit.GrantRefresh|ratelimit.GrantPassword)},
		Client: []ratelimit.Limit{ratelimit.NewLimit("itself", 9, time.Minute)},
	})
	c, ann := NewCounters(0), ratelimit.Key{ClientID: "client", Username: "ann"}
	code := e.ForRequest(ratelimit.GrantCode, "")
	for range 3 {
		d := c.Take(at(epoch), ann, code, 1)
		check.Equal(t, "outcome", d.Outcome, ratelimit.Allowed)
		check.Equal(t, "counted", d.Counted(), false)
		policy, fields := d.Headers()
		check.Equal(t, "fields", policy+fields, "")
	}
	_, denies := c.Denies(at(epoch), ann, code)
	check.Equal(t, "denied early", denies, false)
	check.Equal(t, "keys", c.Len(), 0)
	check.Equal(t, "refund", c.Refund(at(epoch), at(epoch), ann, code, 1), false)
	mustAdmit(t, 1, c, at(epoch), ann, e.ForRequest(ratelimit.GrantPassword, ""))
	mustAdmit(t, 0, c, at(epoch), ann, e.ForRequest(ratelimit.GrantRefresh, ""))
}

// TestGrantsOfAnOverride: overrides can be restricted to some grants too.
func TestGrantsOfAnOverride(t *testing.T) {
	edit := (&ratelimit.Compiled{}).Edit()
	check.OK(t, edit.SetCommon(ratelimit.DefaultSettings()))
	check.OK(t, edit.SetOverride("client", "ann", []ratelimit.Limit{forGrants(ratelimit.NewLimit("refreshes", 1, time.Minute), ratelimit.GrantRefresh)}))
	e, c, ann := edit.Compiled().For("client"), NewCounters(0), ratelimit.Key{ClientID: "client", Username: "ann"}
	mustAdmit(t, 1, c, at(epoch), ann, e.ForRequest(ratelimit.GrantRefresh, ""))
	d := c.Take(at(epoch), ann, e.ForRequest(ratelimit.GrantCode, ""), 1)
	check.Equal(t, "a code", d.Outcome, ratelimit.Allowed)
}

// TestSource: requests of all users from one address count together. Requests from another address
// do not, and a denied request is not counted at all.
func TestSource(t *testing.T) {
	e := appliedBy(t, ratelimit.Policy{
		User: []ratelimit.Limit{ratelimit.NewLimit("user", 3, time.Minute)}, Client: []ratelimit.Limit{ratelimit.NewLimit("itself", 9, time.Minute)},
		Source: []ratelimit.Limit{ratelimit.NewLimit("per-address", 4, time.Minute)}, Total: []ratelimit.Limit{ratelimit.NewLimit("all", 9, time.Minute)},
	})
	c, ann, bob, itself := NewCounters(0), ratelimit.Key{ClientID: "client", Username: "ann"}, ratelimit.Key{ClientID: "client", Username: "bob"}, ratelimit.Key{ClientID: "client", Username: ""}
	here, there := e.ForRequest(ratelimit.GrantCode, "192.0.2.1"), e.ForRequest(ratelimit.GrantCode, "2001:db8::/64")
	mustAdmit(t, 3, c, at(epoch), ann, here)
	mustAdmit(t, 1, c, at(epoch), bob, here)
	d := c.Take(at(epoch), bob, here, 1)
	check.Equal(t, "violated", strings.Join(d.Violated(), " "), "per-address")
	check.Equal(t, "over what it shares", d.OverShared(), true)
	check.Equal(t, "over the total", d.OverTotal(), false)
	check.Equal(t, "towards a ban", d.ThroughLimit(), false)
	policy, fields := d.Headers()
	check.Equal(t, "RateLimit-Policy", policy, `"user";q=3;w=60, "per-address";q=4;w=60, "all";q=9;w=60`)
	check.Equal(t, "RateLimit", fields, `"user";r=2;t=57, "per-address";r=0;t=57, "all";r=5;t=57`)
	_, denies := c.Denies(at(epoch), bob, here)
	check.Equal(t, "Denies", denies, true)
	check.Equal(t, "bob", counted(c, at(epoch), bob), int64(1))
	check.Equal(t, "total", counted(c, at(epoch), ann.Total()), int64(4))
	check.Equal(t, "source", counted(c, at(epoch), ann.Source("192.0.2.1")), int64(4))
	mustAdmit(t, 2, c, at(epoch), bob, there)
	mustAdmit(t, 2, c, at(epoch), itself, there)
	check.Equal(t, "the other source", counted(c, at(epoch), ann.Source("2001:db8::/64")), int64(4))
	d = c.Take(at(epoch), itself, e.ForRequest(0, "192.0.2.7"), 1)
	check.Equal(t, "the ninth of all", d.Outcome, ratelimit.Allowed)
	d = c.Take(at(epoch), itself, e.ForRequest(0, "192.0.2.8"), 1)
	check.Equal(t, "over the total", d.OverTotal(), true)
	check.Equal(t, "a source that nothing was counted of", counted(c, at(epoch), ann.Source("192.0.2.8")), int64(0))
	check.Equal(t, "refund", c.Refund(at(epoch), at(epoch), bob, here, 1), true)
	check.Equal(t, "source after it", counted(c, at(epoch), ann.Source("192.0.2.1")), int64(3))
	check.Equal(t, "total after it", counted(c, at(epoch), ann.Total()), int64(8))
	check.Equal(t, "reset", c.Reset(ann.Source("192.0.2.1")), true)
	check.Equal(t, "For", e.For(ann.Source("192.0.2.1")), e.Source)
	check.Equal(t, "keys of the client", len(c.ClientUsage(at(epoch), "client", 99)), 6)
}

// TestShardsOfSources: the syncer and the display find the counters of a source in the same shard
// as decisions.
func TestShardsOfSources(t *testing.T) {
	e := appliedBy(t, ratelimit.Policy{
		User: []ratelimit.Limit{ratelimit.NewLimit("user", 3, time.Minute)}, Client: []ratelimit.Limit{ratelimit.NewLimit("itself", 9, time.Minute)},
		Source: []ratelimit.Limit{ratelimit.NewLimit("per-address", 400, time.Minute)},
	})
	c := NewCounters(0)
	attach(c)
	for i := range 100 {
		mustAdmit(t, 3, c, at(epoch), ratelimit.Key{ClientID: "client", Username: strconv.Itoa(i)}, e.ForRequest(0, "192.0.2."+strconv.Itoa(i)))
	}
	settle(c, at(epoch))
	n := len(c.shards) / 3
	for i := range 100 {
		k := ratelimit.Key{ClientID: "client"}.Source("192.0.2." + strconv.Itoa(i))
		s, _ := c.lookup(k)
		check.Equal(t, "in the range of sources", int(s.number)/n, 1)
		u := c.Usage(at(epoch), k)
		check.Equal(t, "known", u[0].Known, int64(3))
	}
}

// TestDecidesAsItsLimitsAlone: a request is admitted if each limit that counts it would admit it
// alone. Otherwise it is not counted, and its wait is at least the longest of theirs.
func TestDecidesAsItsLimitsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		if err := p.Validate(); err != nil {
			t.Skip(err)
		}
		e, c := appliedBy(t, p), NewCounters(0)
		alone := newAlone(&p)
		now := int64(epoch)
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now += drawStep(t, p.User[0].Window)
			k := ratelimit.Key{ClientID: "client", Username: rapid.SampledFrom([]string{"ann", "bob", ""}).Draw(t, "user")}
			from := rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2"}).Draw(t, "from")
			grant := ratelimit.Grants(0)
			if k.Username != "" {
				grant = rapid.SampledFrom([]ratelimit.Grants{ratelimit.GrantCode, ratelimit.GrantRefresh, ratelimit.GrantPassword}).Draw(t, "grant")
			}
			asked := e.ForRequest(grant, from)
			early, denies := c.Denies(at(now), k, asked)
			d := c.Take(at(now), k, asked, 1)
			wait, counts := alone.take(at(now), k, from, grant)
			mustEqual(t, "admitted", wait == 0, d.Outcome == ratelimit.Allowed)
			mustEqual(t, "denied early", wait != 0, denies)
			mustEqual(t, "RetryAfter of Denies", d.RetryAfter, early.RetryAfter)
			mustEqual(t, "limits that count it", counts, applying(&d))
			if d.RetryAfter < wait {
				t.Fatalf("waits for %v, alone for %v", d.RetryAfter, wait)
			}
			if wait == 0 && rapid.IntRange(0, 5).Draw(t, "give back") == 0 && counts > 0 {
				mustEqual(t, "given back", c.Refund(at(now), at(now), k, asked, 1), true)
				alone.refund(at(now), k, from, grant)
			}
		}
	})
}

func applying(d *ratelimit.Decision) (n int) {
	for range d.Limits() {
		n++
	}
	return n
}

func drawPolicy(t *rapid.T) ratelimit.Policy {
	user := []ratelimit.Limit{drawLimit(t, "a"), drawLimit(t, "b"), drawLimit(t, "c")}[:rapid.IntRange(1, 3).Draw(t, "limits")]
	for i := range user {
		user[i].Grants = ratelimit.Grants(rapid.IntRange(0, 7).Draw(t, "grants"))
	}
	p := ratelimit.Policy{User: user, Client: []ratelimit.Limit{drawLimit(t, "d")}}
	if rapid.Bool().Draw(t, "with a source") {
		p.Source = []ratelimit.Limit{drawLimit(t, "e")}
	}
	if rapid.Bool().Draw(t, "with a total") {
		p.Total = []ratelimit.Limit{drawLimit(t, "f")}
		p.Total[0].Requests += 20
	}
	return p
}

// alone has every limit of a policy separately, each with its own counters.
type alone struct {
	policy *ratelimit.Policy
	each   map[string]*Counters
}

func newAlone(p *ratelimit.Policy) *alone { return &alone{p, map[string]*Counters{}} }

// counting calls visit with the counters of each limit that counts the request.
func (a *alone) counting(k ratelimit.Key, from string, grant ratelimit.Grants, visit func(c *Counters, k ratelimit.Key, e *ratelimit.Effective)) {
	own := a.policy.User
	if k.Username == "" {
		own = a.policy.Client
	}
	for i, list := range [][]ratelimit.Limit{own, a.policy.Source, a.policy.Total} {
		for _, l := range list {
			if l.Grants != 0 && l.Grants&grant == 0 {
				continue
			}
			if a.each[l.Name] == nil {
				a.each[l.Name] = NewCounters(0)
			}
			l.Grants = 0
			ls := ratelimit.NewLimits([]ratelimit.Limit{l})
			visit(a.each[l.Name], []ratelimit.Key{k, {ClientID: "source", Username: from}, {ClientID: "total", Username: "total"}}[i], &ratelimit.Effective{User: ls, Client: ls, Mode: ratelimit.Enforce})
		}
	}
}

// take counts a request if all limits admit it. It returns how many count it, and the longest wait.
func (a *alone) take(now time.Time, k ratelimit.Key, from string, grant ratelimit.Grants) (wait time.Duration, counts int) {
	a.counting(k, from, grant, func(c *Counters, k ratelimit.Key, e *ratelimit.Effective) {
		counts++
		d, _ := c.Denies(now, k, e)
		wait = max(wait, d.RetryAfter)
	})
	if wait == 0 {
		a.counting(k, from, grant, func(c *Counters, k ratelimit.Key, e *ratelimit.Effective) { c.Take(now, k, e, 1) })
	}
	return wait, counts
}

func (a *alone) refund(now time.Time, k ratelimit.Key, from string, grant ratelimit.Grants) {
	a.counting(k, from, grant, func(c *Counters, k ratelimit.Key, e *ratelimit.Effective) { c.Refund(now, now, k, e, 1) })
}

// TestAllKeysInOneStep: while many goroutines take, refund and flush, the counts of sources and
// totals always equal the sum of the users.
func TestAllKeysInOneStep(t *testing.T) {
	e := appliedBy(t, ratelimit.Policy{
		User: []ratelimit.Limit{ratelimit.NewLimit("user", 300, time.Minute)}, Client: []ratelimit.Limit{ratelimit.NewLimit("itself", 9, time.Minute)},
		Source: []ratelimit.Limit{ratelimit.NewLimit("per-address", 350, time.Minute)}, Total: []ratelimit.Limit{ratelimit.NewLimit("all", 900, time.Minute)},
	})
	c := NewCounters(0)
	attach(c)
	stop := make(chan struct{})
	var workers, watcher sync.WaitGroup
	watcher.Go(func() {
		for {
			settle(c, at(epoch))
			if users, others := sumsByRange(c); users != others[0] || users != others[1] {
				t.Errorf("%d of users, %d of sources and %d of the total", users, others[0], others[1])
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
				k, asked := ratelimit.Key{ClientID: "client", Username: strconv.Itoa((w + i) % 4)}, e.ForRequest(0, strconv.Itoa(i%3))
				if d := c.Take(at(epoch), k, asked, 1); d.Outcome == ratelimit.Allowed && i%8 == 0 {
					c.Refund(at(epoch), at(epoch), k, asked, 1)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	watcher.Wait()
	if users, _ := sumsByRange(c); users == 0 {
		t.Error("nothing was counted")
	}
}

// sumsByRange returns the counts under the first limits of all users, of all sources and of all
// totals, at one moment.
func sumsByRange(c *Counters) (users int64, others [2]int64) {
	for i := range c.shards {
		c.shards[i].mu.Lock()
		defer c.shards[i].mu.Unlock()
	}
	var sum [3]int64
	for i := range c.shards {
		s := &c.shards[i]
		for num := uint32(1); num < s.Numbers; num++ {
			if s.IsKey(num) {
				slots := s.SlotsOf(num)
				for j := range slots {
					sum[i*3/len(c.shards)] += slots[j].Total(1)
				}
			}
		}
	}
	return sum[0], [2]int64{sum[1], sum[2]}
}
