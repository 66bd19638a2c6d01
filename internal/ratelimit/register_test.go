package ratelimit

import (
	"runtime"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// TestListsAreInterned: an unchanged list of limits stays the same when a policy is compiled again,
// so no counter has to change.
func TestListsAreInterned(t *testing.T) {
	a, b := NewLimits([]Limit{perMinute(17)}), NewLimits([]Limit{perMinute(17)})
	if a != b || LimitsOf(a.Number).Number != a.Number {
		t.Errorf("%p and %p are different lists", a, b)
	}
	other := perMinute(17)
	other.OnOutage = Deny
	if c := NewLimits([]Limit{other}); c == a {
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
	ls := LimitsOf(number)
	return ls != nil && ls.Rules[0].Requests == requests
}

// TestListsAreDropped: a compiled list is kept exactly as long as a policy or a counter uses it.
func TestListsAreDropped(t *testing.T) {
	before := drop()
	eff, err := Enforced(perMinute(1001), perMinute(1002))
	check.OK(t, err)
	user, client := eff.User.Number, eff.Client.Number
	eff.User.Hold()
	check.Equal(t, "lists while a policy has two", drop(), before+2)
	runtime.KeepAlive(eff)
	if got := drop(); got != before+1 || !has(user, 1001) || has(client, 1002) {
		t.Errorf("%d lists while a counter has one, want %d", got, before+1)
	}
	again, err := Enforced(perMinute(1001), perMinute(1003))
	check.OK(t, err)
	if again.User.Number != user || again.Client.Number != client {
		t.Errorf("the lists are %d and %d, want %d again, and the free number %d", again.User.Number, again.Client.Number, user, client)
	}
	again.User.Release()
	runtime.KeepAlive(again)
	if got := drop(); got != before || LimitsOf(user) != nil {
		t.Errorf("%d lists after all, want %d", got, before)
	}
}

// TestRegisterIsBounded: repeated changes of policies do not make the register grow.
func TestRegisterIsBounded(t *testing.T) {
	drop()
	before := len(*register.all.Load()) // other tests may have used many at once
	for i := range int64(20_000) {
		NewLimits([]Limit{perMinute(1_000_000 + i)})
		if i%1000 == 0 {
			runtime.GC()
		}
	}
	if got := len(*register.all.Load()); got > before+5000 {
		t.Errorf("%d lists, of %d before and 20,000 that were used once", got, before)
	}
}

// TestFrameNames: seconds if frames are whole seconds, otherwise milliseconds.
func TestFrameNames(t *testing.T) {
	for _, tc := range []struct {
		window time.Duration
		frames int
		want   int64
	}{
		{time.Minute, 1, 1_622_211_780},
		{time.Minute, 4, 1_622_211_780},
		{time.Second, 1, 1_622_211_783},
		{time.Second, 10, 1_622_211_783_200},
		{3 * time.Second, 2, 1_622_211_783_000},
	} {
		l := NewLimit("l", 5, tc.window)
		l.Frames = tc.frames
		r := NewLimits([]Limit{l}).Rules[0]
		name := FrameName(r.align(epoch), r.FrameMS)
		if name != tc.want || FrameStart(name) != r.align(epoch) {
			t.Errorf("%v in %d frames: %d, which begins at %d", tc.window, tc.frames, name, FrameStart(name))
		}
	}
}
