package counting

import (
	"math"
	"strconv"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestDeniesIsTakeWithoutCounting calls Denies before every Take, through three windows.
func TestDeniesIsTakeWithoutCounting(t *testing.T) {
	c, k, eff := single(ratelimit.NewLimit("wide", 7, time.Hour), ratelimit.NewLimit("narrow", 3, time.Minute))
	denied, plain := 0, NewCounters(0)
	for now := at(epoch); now.Before(at(epoch).Add(3 * time.Hour)); now = now.Add(7 * time.Second) {
		early, denies := c.Denies(now, k, eff)
		d := c.Take(now, k, eff, 1)
		mustEqual(t, "Take after Denies", plain.Take(now, k, eff, 1).Outcome, d.Outcome)
		mustEqual(t, "Denies", d.Outcome == ratelimit.Denied, denies)
		if denies {
			mustEqual(t, "the decision of Denies", d, early)
			denied++
		}
	}
	if denied == 0 {
		t.Fatal("no request was denied")
	}
}

func TestDeniesOnlyWhatIsEnforced(t *testing.T) {
	c, k, eff := single(ratelimit.NewLimit("one", 1, time.Minute))
	_, denies := c.Denies(at(epoch), k, eff)
	mustEqual(t, "Denies of a key never seen", false, denies)
	mustEqual(t, "counters made for it", 0, len(c.Usage(at(epoch), k)))
	c.Take(at(epoch), k, eff, 1)
	for name, tc := range map[string]struct {
		edit func(*ratelimit.Effective)
		want bool
	}{
		"enforced": {func(*ratelimit.Effective) {}, true},
		"dry-run":  {func(e *ratelimit.Effective) { e.Mode = ratelimit.DryRun }, false},
		"off":      {func(e *ratelimit.Effective) { e.Mode = ratelimit.Off }, false},
		"trusted":  {func(e *ratelimit.Effective) { e.Trusted = true }, false},
		"another limit": {func(e *ratelimit.Effective) {
			e.User = ratelimit.NewLimits([]ratelimit.Limit{ratelimit.NewLimit("one", 2, time.Minute)})
		}, false},
		"headers hidden": {func(e *ratelimit.Effective) { e.HideHeaders = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			other := *eff
			tc.edit(&other)
			d, denies := c.Denies(at(epoch), k, &other)
			mustEqual(t, "Denies", tc.want, denies)
			_, header := d.Headers()
			mustEqual(t, "a RateLimit field", tc.want && !other.HideHeaders, header != "")
		})
	}
}

// TestDeniesWithoutRoom: a key without room is denied as Take denies it, by its overflow counter or
// because no overflow counter is free. It is denied again when it has room and inherits the counts.
func TestDeniesWithoutRoom(t *testing.T) {
	_, _, eff := single(ratelimit.NewLimit("per-minute", 5, time.Minute))
	c := NewCounters(1)
	now, denied := at(epoch), 0
	ask := func(k ratelimit.Key, e *ratelimit.Effective) (denies bool) {
		t.Helper()
		early, denies := c.Denies(now, k, e)
		keys, d := c.Len(), c.Take(now, k, e, 1)
		mustEqual(t, "Denies", d.Outcome == ratelimit.Denied, denies)
		if denies {
			mustEqual(t, "the decision of Denies", d, early)
			denied++
		}
		if keys == 1 {
			mustEqual(t, "keys", 1, c.Len())
		}
		return denies
	}
	ask(ratelimit.Key{ClientID: "client", Username: "the only one with room"}, eff)
	for i := range 1000 {
		ask(ratelimit.Key{ClientID: "client", Username: strconv.Itoa(i)}, eff)
	}
	mustEqual(t, "denied by overflow counters", 1000-5*overflowPlaces, denied)
	c.Reset(ratelimit.Key{ClientID: "client", Username: "the only one with room"})
	mustEqual(t, "Denies when there is room", true, ask(ratelimit.Key{ClientID: "client", Username: "late"}, eff))

	for i := range maxOverflow {
		_, k, other := single(ratelimit.NewLimit("l"+strconv.Itoa(i), 5, time.Minute))
		k.Username = strconv.Itoa(i)
		mustEqual(t, "denied policy "+strconv.Itoa(i), i >= maxOverflow-overflowPlaces, ask(k, other))
	}
	now = now.Add(3 * time.Minute)
	mustEqual(t, "Denies when all is long ago", false, ask(ratelimit.Key{ClientID: "client", Username: "later"}, eff))
}

// TestRoom: exactly as many requests pass as Room returns, for each key that counts a request.
func TestRoom(t *testing.T) {
	p, err := ratelimit.Compile(ratelimit.Settings{Mode: ratelimit.Enforce, Default: ratelimit.Policy{
		User: []ratelimit.Limit{ratelimit.NewLimit("narrow", 3, time.Minute), ratelimit.NewLimit("wide", 5, time.Hour)}, Client: []ratelimit.Limit{ratelimit.NewLimit("narrow", 3, time.Minute)},
		Source: []ratelimit.Limit{ratelimit.NewLimit("per-address", 10, time.Minute)}, Total: []ratelimit.Limit{ratelimit.NewLimit("all", 20, time.Minute)},
	}})
	check.OK(t, err)
	c, now := NewCounters(0), at(epoch)
	room := func(user string, e *ratelimit.Effective) [3]int64 {
		own, source, total := c.Room(now, ratelimit.Key{ClientID: "shop", Username: user}, e)
		return [3]int64{own, source, total}
	}
	whole, none := p.For("shop"), int64(math.MaxInt64)
	mustEqual(t, "at first", [3]int64{3, none, 20}, room("ada", whole))
	asked := whole.ForRequest(0, "192.0.2.1")
	mustEqual(t, "from an address", [3]int64{3, 10, 20}, room("ada", asked))
	for n := int64(3); n > 0; n-- {
		mustEqual(t, "of a user", [3]int64{n, 7 + n, 17 + n}, room("ada", asked))
		c.Take(now, ratelimit.Key{ClientID: "shop", Username: "ada"}, asked, 1)
	}
	mustEqual(t, "used up", [3]int64{0, 7, 17}, room("ada", asked))
	mustEqual(t, "of the client itself", [3]int64{3, 7, 17}, room("", asked))
	mustEqual(t, "of nobody who is known", [3]int64{none, none, 17}, room("", whole.Only(false, true, false)))
	now = now.Add(2 * time.Minute)
	mustEqual(t, "the other limit", [3]int64{2, 10, 20}, room("ada", asked))
}
