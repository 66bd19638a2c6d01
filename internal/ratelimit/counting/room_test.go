package counting

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// addressed returns a policy with a limit for the client itself and one for each address.
func addressed(t *testing.T, itself int64) *ratelimit.Effective {
	t.Helper()
	return appliedBy(t, ratelimit.Policy{
		User: []ratelimit.Limit{ratelimit.NewLimit("user", 10, time.Minute)}, Client: []ratelimit.Limit{ratelimit.NewLimit("itself", itself, time.Minute)},
		Source: []ratelimit.Limit{ratelimit.NewLimit("per-address", 5, time.Minute)},
	})
}

func addressOf(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) }

// TestSourcesHaveRoomOfTheirOwn: any number of addresses of one client takes no room from other
// users. Sources find room even if the memory is full of users.
func TestSourcesHaveRoomOfTheirOwn(t *testing.T) {
	e, other := addressed(t, 9_000_000), appliedBy(t, ratelimit.DefaultSettings().Default)
	c := NewCounters(20_000)
	attach(c)
	for i := range 30_000 {
		c.Take(at(epoch), ratelimit.Key{ClientID: "flood", Username: ""}, e.ForRequest(0, addressOf(i)), 1)
	}
	before := c.Stats()
	for i := range 10_000 {
		d := c.Take(at(epoch), ratelimit.Key{ClientID: "other", Username: fmt.Sprint(i)}, other, 1)
		mustEqual(t, "outcome", ratelimit.Allowed, d.Outcome)
	}
	check.Equal(t, "users without a counter of their own", c.Stats().Overflowed, before.Overflowed)
	check.Equal(t, "sources in memory", c.all.sources.Load(), int64(5000))

	c = NewCounters(20_000)
	attach(c)
	for i := range 20_000 {
		c.Take(at(epoch), ratelimit.Key{ClientID: "other", Username: fmt.Sprint(i)}, other, 1)
	}
	before = c.Stats()
	for i := range 4000 {
		d := c.Take(at(epoch), ratelimit.Key{ClientID: "client", Username: ""}, e.ForRequest(0, addressOf(i)), 1)
		mustEqual(t, "outcome", ratelimit.Allowed, d.Outcome)
	}
	// The client itself is an ordinary key, and shares a counter.
	check.Equal(t, "decisions on overflow counters", c.Stats().Overflowed-before.Overflowed <= 4000, true)
	check.Equal(t, "a source", counted(c, at(epoch), ratelimit.Key{ClientID: "client"}.Source(addressOf(3999))), int64(1))
}

// TestDeniedAddsNoSource: a request that its own key denies does not add its address.
func TestDeniedAddsNoSource(t *testing.T) {
	c, e := NewCounters(0), addressed(t, 1)
	for i := range 1000 {
		c.Take(at(epoch), ratelimit.Key{ClientID: "client", Username: ""}, e.ForRequest(0, addressOf(i)), 1)
	}
	check.Equal(t, "keys", c.Len(), 2)
}

// TestSourceWithoutRoom: a source without even an overflow counter is denied, and neither its user
// nor the total counts the request.
func TestSourceWithoutRoom(t *testing.T) {
	e := appliedBy(t, ratelimit.Policy{
		User: []ratelimit.Limit{ratelimit.NewLimit("user", 10, time.Hour)}, Client: []ratelimit.Limit{ratelimit.NewLimit("itself", 9, time.Hour)},
		Source: []ratelimit.Limit{ratelimit.NewLimit("per-address", 1, time.Hour)}, Total: []ratelimit.Limit{ratelimit.NewLimit("all", 9999, time.Hour)},
	})
	c := NewCounters(64)
	attach(c)
	var admitted int64
	for i := range 2000 {
		if d := c.Take(at(epoch), ratelimit.Key{ClientID: "client", Username: "ann"}, e.ForRequest(0, addressOf(i)), 1); d.Outcome == ratelimit.Allowed {
			admitted++
		}
		c.Refund(at(epoch), at(epoch), ratelimit.Key{ClientID: "client", Username: "ann"}, appliedBy(t, ratelimit.DefaultSettings().Default), 1) // under other limits: no effect
	}
	check.Equal(t, "counted by the user", counted(c, at(epoch), ratelimit.Key{ClientID: "client", Username: "ann"}), admitted)
	check.Equal(t, "counted by the total", counted(c, at(epoch), ratelimit.Key{ClientID: "client"}.Total()), admitted)
}

// TestSourceWithoutOverflow: if the memory is full of addresses under many lists, an address under
// another list gets no overflow counter. Its request is denied for a moment, over no limit, and not
// counted.
func TestSourceWithoutOverflow(t *testing.T) {
	c := NewCounters(64)
	attach(c)
	k, without := ratelimit.Key{ClientID: "client", Username: "ann"}, 0
	for i := range 200 {
		e := appliedBy(t, ratelimit.Policy{
			User: []ratelimit.Limit{ratelimit.NewLimit("user", 1_000_000, time.Hour)}, Client: []ratelimit.Limit{ratelimit.NewLimit("itself", 9, time.Hour)},
			Source: []ratelimit.Limit{ratelimit.NewLimit("per-address", 1, time.Hour+time.Duration(i)*time.Minute)}, Total: []ratelimit.Limit{ratelimit.NewLimit("all", 9_000_000, time.Hour)},
		})
		for j := range 40 {
			user, total := counted(c, at(epoch), k), counted(c, at(epoch), k.Total())
			d := c.Take(at(epoch), k, e.ForRequest(0, addressOf(1000*i+j)), 1)
			want := int64(0)
			if d.Outcome == ratelimit.Allowed {
				want = 1
			} else if !d.Exceeded() {
				without++
				check.Equal(t, "rejected", d.Rejected(), true)
				check.Equal(t, "RetryAfter", d.RetryAfter > 0 && d.RetryAfter < ratelimit.Never, true)
				check.Equal(t, "violated", len(d.Violated()), 0)
			}
			check.Equal(t, "counted by the user", counted(c, at(epoch), k)-user, want)
			check.Equal(t, "counted by the total", counted(c, at(epoch), k.Total())-total, want)
		}
	}
	if without == 0 {
		t.Error("every address found a counter: the test is blind")
	}
}

// TestLongClientIDs: a client_id may be too long for a key with a long username, but short enough
// for a key with a source or the total. All calls must then use the same keys.
func TestLongClientIDs(t *testing.T) {
	c, id := NewCounters(0), strings.Repeat("long-", 40)
	e := appliedBy(t, ratelimit.Policy{
		User: []ratelimit.Limit{ratelimit.NewLimit("user", 3, time.Hour)}, Client: []ratelimit.Limit{ratelimit.NewLimit("itself", 3, time.Hour)},
		Source: []ratelimit.Limit{ratelimit.NewLimit("per-address", 2, time.Hour)}, Total: []ratelimit.Limit{ratelimit.NewLimit("all", 9, time.Hour)},
	}).ForRequest(0, addressOf(1))
	k := ratelimit.Key{ClientID: id, Username: strings.Repeat("ann", 40)}
	for range 2 {
		mustEqual(t, "outcome", ratelimit.Allowed, c.Take(at(epoch), k, e, 1).Outcome)
	}
	_, denies := c.Denies(at(epoch), k, e)
	check.Equal(t, "denies at the limit of the source", denies, true)
	check.Equal(t, "refunded", c.Refund(at(epoch), at(epoch), k, e, 1), true)
	_, denies = c.Denies(at(epoch), k, e)
	check.Equal(t, "denies after a refund", denies, false)
	for name, key := range map[string]ratelimit.Key{"user": k, "source": ratelimit.Key{ClientID: id}.Source(addressOf(1)), "total": k.Total()} {
		check.Equal(t, "counted by the "+name, counted(c, at(epoch), key.Bounded()), int64(1))
	}
}
