package ratelimit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// addressed returns a policy with a limit for the client itself and one for each address.
func addressed(t *testing.T, itself int64) *Effective {
	t.Helper()
	return appliedBy(t, Policy{
		User: []Limit{NewLimit("user", 10, time.Minute)}, Client: []Limit{NewLimit("itself", itself, time.Minute)},
		Source: []Limit{NewLimit("per-address", 5, time.Minute)},
	})
}

func addressOf(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) }

// TestSourcesHaveRoomOfTheirOwn: any number of addresses of one client takes no room from other
// users. Sources find room even if the memory is full of users.
func TestSourcesHaveRoomOfTheirOwn(t *testing.T) {
	e, other := addressed(t, 9_000_000), appliedBy(t, DefaultSettings().Default)
	c := NewCounters(20_000)
	attach(c)
	for i := range 30_000 {
		c.Take(at(epoch), Key{"flood", ""}, e.ForRequest(0, addressOf(i)), 1)
	}
	before := c.Stats()
	for i := range 10_000 {
		d := c.Take(at(epoch), Key{"other", fmt.Sprint(i)}, other, 1)
		mustEqual(t, "outcome", Allowed, d.Outcome)
	}
	check.Equal(t, "users without a counter of their own", c.Stats().Overflowed, before.Overflowed)
	check.Equal(t, "sources in memory", c.all.sources.Load(), int64(5000))

	c = NewCounters(20_000)
	attach(c)
	for i := range 20_000 {
		c.Take(at(epoch), Key{"other", fmt.Sprint(i)}, other, 1)
	}
	before = c.Stats()
	for i := range 4000 {
		d := c.Take(at(epoch), Key{"client", ""}, e.ForRequest(0, addressOf(i)), 1)
		mustEqual(t, "outcome", Allowed, d.Outcome)
	}
	// The client itself is an ordinary key, and shares a counter.
	check.Equal(t, "decisions on overflow counters", c.Stats().Overflowed-before.Overflowed <= 4000, true)
	check.Equal(t, "a source", counted(c, at(epoch), Key{ClientID: "client"}.Source(addressOf(3999))), int64(1))
}

// TestDeniedAddsNoSource: a request that its own key denies does not add its address.
func TestDeniedAddsNoSource(t *testing.T) {
	c, e := NewCounters(0), addressed(t, 1)
	for i := range 1000 {
		c.Take(at(epoch), Key{"client", ""}, e.ForRequest(0, addressOf(i)), 1)
	}
	check.Equal(t, "keys", c.Len(), 2)
}

// TestSourceWithoutRoom: a source without even an overflow counter is denied, and neither its user
// nor the total counts the request.
func TestSourceWithoutRoom(t *testing.T) {
	e := appliedBy(t, Policy{
		User: []Limit{NewLimit("user", 10, time.Hour)}, Client: []Limit{NewLimit("itself", 9, time.Hour)},
		Source: []Limit{NewLimit("per-address", 1, time.Hour)}, Total: []Limit{NewLimit("all", 9999, time.Hour)},
	})
	c := NewCounters(64)
	attach(c)
	var admitted int64
	for i := range 2000 {
		if d := c.Take(at(epoch), Key{"client", "ann"}, e.ForRequest(0, addressOf(i)), 1); d.Outcome == Allowed {
			admitted++
		}
		c.Refund(at(epoch), at(epoch), Key{"client", "ann"}, appliedBy(t, DefaultSettings().Default), 1) // under other limits: no effect
	}
	check.Equal(t, "counted by the user", counted(c, at(epoch), Key{"client", "ann"}), admitted)
	check.Equal(t, "counted by the total", counted(c, at(epoch), Key{ClientID: "client"}.Total()), admitted)
}

// TestSourceWithoutOverflow: if the memory is full of addresses under many lists, an address under
// another list gets no overflow counter. Its request is denied for a moment, over no limit, and not
// counted.
func TestSourceWithoutOverflow(t *testing.T) {
	c := NewCounters(64)
	attach(c)
	k, without := Key{"client", "ann"}, 0
	for i := range 200 {
		e := appliedBy(t, Policy{
			User: []Limit{NewLimit("user", 1_000_000, time.Hour)}, Client: []Limit{NewLimit("itself", 9, time.Hour)},
			Source: []Limit{NewLimit("per-address", 1, time.Hour+time.Duration(i)*time.Minute)}, Total: []Limit{NewLimit("all", 9_000_000, time.Hour)},
		})
		for j := range 40 {
			user, total := counted(c, at(epoch), k), counted(c, at(epoch), k.Total())
			d := c.Take(at(epoch), k, e.ForRequest(0, addressOf(1000*i+j)), 1)
			want := int64(0)
			if d.Outcome == Allowed {
				want = 1
			} else if !d.Exceeded() {
				without++
				check.Equal(t, "rejected", d.Rejected(), true)
				check.Equal(t, "RetryAfter", d.RetryAfter > 0 && d.RetryAfter < Never, true)
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
	e := appliedBy(t, Policy{
		User: []Limit{NewLimit("user", 3, time.Hour)}, Client: []Limit{NewLimit("itself", 3, time.Hour)},
		Source: []Limit{NewLimit("per-address", 2, time.Hour)}, Total: []Limit{NewLimit("all", 9, time.Hour)},
	}).ForRequest(0, addressOf(1))
	k := Key{id, strings.Repeat("ann", 40)}
	for range 2 {
		mustEqual(t, "outcome", Allowed, c.Take(at(epoch), k, e, 1).Outcome)
	}
	_, denies := c.Denies(at(epoch), k, e)
	check.Equal(t, "denies at the limit of the source", denies, true)
	check.Equal(t, "refunded", c.Refund(at(epoch), at(epoch), k, e, 1), true)
	_, denies = c.Denies(at(epoch), k, e)
	check.Equal(t, "denies after a refund", denies, false)
	for name, key := range map[string]Key{"user": k, "source": Key{ClientID: id}.Source(addressOf(1)), "total": k.Total()} {
		check.Equal(t, "counted by the "+name, counted(c, at(epoch), key.bounded()), int64(1))
	}
}
