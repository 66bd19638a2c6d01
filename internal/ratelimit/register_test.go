package ratelimit

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// TestListsAreInterned: an unchanged list of limits stays the same when a policy is compiled again,
// so no counter has to change.
func TestListsAreInterned(t *testing.T) {
	a, b := newLimits([]Limit{perMinute(17)}), newLimits([]Limit{perMinute(17)})
	if a != b || limitsOf(a.number).number != a.number {
		t.Errorf("%p and %p are different lists", a, b)
	}
	other := perMinute(17)
	other.OnOutage = Deny
	if c := newLimits([]Limit{other}); c == a {
		t.Error("different limits are the same list")
	}
}

// drop drops all unused lists and returns how many are left.
func drop() int {
	runtime.GC()
	register.mu.Lock()
	defer register.mu.Unlock()
	dropLimits()
	return len(register.byText)
}

// has reports whether the register has a list.
func has(number uint32, requests int64) bool {
	ls := limitsOf(number)
	return ls != nil && ls.rules[0].Requests == requests
}

// TestListsAreDropped: a compiled list is kept exactly as long as a policy or a counter uses it.
func TestListsAreDropped(t *testing.T) {
	before := drop()
	eff, err := Enforced(perMinute(1001), perMinute(1002))
	check.OK(t, err)
	user, client := eff.User.number, eff.Client.number
	c, k := NewCounters(10), Key{ClientID: "shop", Username: "ada"}
	if d := c.Take(at(epoch), k, eff, 1); d.Outcome != Allowed {
		t.Fatalf("outcome %v", d.Outcome)
	}
	if got := drop(); got != before+2 {
		t.Errorf("%d lists while a policy has two, want %d", got, before+2)
	}
	runtime.KeepAlive(eff)
	if got := drop(); got != before+1 || !has(user, 1001) || has(client, 1002) {
		t.Errorf("%d lists while a counter has one, want %d", got, before+1)
	}
	again, err := Enforced(perMinute(1001), perMinute(1003))
	check.OK(t, err)
	if again.User.number != user || again.Client.number != client {
		t.Errorf("the lists are %d and %d, want %d again, and the free number %d", again.User.number, again.Client.number, user, client)
	}
	// The key changes to another list, and back, and is removed.
	other, err := Enforced(perMinute(1004), perMinute(1003))
	check.OK(t, err)
	for _, eff := range []*Effective{again, other, again, other} {
		c.Take(at(epoch), k, eff, 1)
	}
	if got := drop(); got != before+2 || limitsOf(user) != nil {
		t.Errorf("%d lists, want those of the last policy: %d", got, before+2)
	}
	s, h := c.lookup(k)
	s.remove(s.find(h))
	runtime.KeepAlive(other)
	if got := drop(); got != before {
		t.Errorf("%d lists after all, want %d", got, before)
	}
}

// TestRegisterIsBounded: repeated changes of policies do not make the register grow.
func TestRegisterIsBounded(t *testing.T) {
	drop()
	before := len(*register.all.Load()) // other tests may have used many at once
	for i := range int64(20_000) {
		newLimits([]Limit{perMinute(1_000_000 + i)})
		if i%1000 == 0 {
			runtime.GC()
		}
	}
	if got := len(*register.all.Load()); got > before+5000 {
		t.Errorf("%d lists, of %d before and 20,000 that were used once", got, before)
	}
}

// TestRegisterShrinks: after many lists were in use, unused ones are dropped even if no new ones
// are added. This includes lists that only counters used.
func TestRegisterShrinks(t *testing.T) {
	before, c := drop(), NewCounters(4000)
	var used []*Effective
	for i := range int64(2000) {
		eff, err := Enforced(perMinute(2_000_000+i), perMinute(3_000_000))
		check.OK(t, err)
		c.Take(at(epoch), Key{ClientID: strconv.FormatInt(i, 10), Username: "ada"}, eff, 1)
		used = append(used, eff)
	}
	if got := drop(); got < before+2000 {
		t.Fatalf("%d lists, of 2000 that are used", got)
	}
	runtime.KeepAlive(used)
	runtime.GC()
	if c.Sweep(at(epoch)); len(register.byText) < before+2000 {
		t.Errorf("%d lists, of 2000 that counters have", len(register.byText))
	}
	if c.Sweep(at(epoch).Add(time.Hour)); len(register.byText) > before+leastDropAt {
		t.Errorf("%d lists after all, of %d before", len(register.byText), before)
	}
}
