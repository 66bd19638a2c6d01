package counting

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestListsOfCounters: counters keep the lists that they are under, and no other, however their keys
// come and go.
func TestListsOfCounters(t *testing.T) {
	c, lists := NewCounters(4000), []uint32{}
	use := func(i int64, k string) {
		eff, err := ratelimit.Enforced(perMinute(2_000_000+i), perMinute(3_000_000))
		check.OK(t, err)
		c.Take(at(epoch), ratelimit.Key{ClientID: k, Username: "ada"}, eff, 1)
		lists = append(lists, eff.User.Number)
	}
	for i := range int64(200) {
		use(i, strconv.FormatInt(i, 10))
	}
	use(200, "0") // this key is no longer under its first list
	runtime.GC()
	c.Sweep(at(epoch))
	for i, number := range lists {
		if ls := ratelimit.LimitsOf(number); (ls != nil) != (i > 0) {
			t.Errorf("list %d: %v", i, ls)
		}
	}
	c.Reset(ratelimit.Key{ClientID: "1", Username: "ada"})
	c.Sweep(at(epoch))
	if ls := ratelimit.LimitsOf(lists[1]); ls != nil {
		t.Errorf("list of a key that was reset: %v", ls)
	}
	c.Sweep(at(epoch).Add(time.Hour))
	for i, number := range lists {
		if ls := ratelimit.LimitsOf(number); ls != nil && ls.Rules[0].Requests == 2_000_000+int64(i) {
			t.Errorf("list %d after all: %v", i, ls)
		}
	}
}
