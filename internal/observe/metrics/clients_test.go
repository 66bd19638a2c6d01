package metrics

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func labels(c *clients) []string {
	var names []string
	for _, held := range c.all() {
		names = append(names, held.label)
	}
	return names
}

// has reports whether the client has its own label.
func (c *clients) has(id string) bool {
	holder, ok := (*c.table.Load())[id]
	return ok && holder != c.other
}

func haveLabels(t *testing.T, c *clients, want ...string) {
	t.Helper()
	got := labels(c)
	slices.Sort(got)
	slices.Sort(want)
	check.Equal(t, "labels", got, want)
}

func hasLabel(t *testing.T, c *clients, id, want string) {
	t.Helper()
	check.Equal(t, "label of "+id, c.of(id).label, want)
}

func ask(c *clients, id string, times int) {
	for range times {
		c.of(id)
	}
}

func TestClientsShareOtherWhenLabelsRunOut(t *testing.T) {
	c := newClients(2)
	hasLabel(t, c, "a", "a")
	hasLabel(t, c, "b", "b")
	hasLabel(t, c, "c", Other)
	hasLabel(t, c, "a", "a")
}

func TestPinnedClientsAlwaysHaveALabel(t *testing.T) {
	c := newClients(2)
	ask(c, "busy", 10)
	ask(c, "quiet", 1)
	c.pin([]string{"shop"})
	haveLabels(t, c, "shop", "busy", Other)
	c.pin([]string{"shop", "app"})
	haveLabels(t, c, "shop", "app", Other)
	c.pin([]string{"partner"})
	if got := labels(c); !slices.Contains(got, "partner") || len(got) > 3 {
		t.Errorf("labels %v, want partner and at most one more", got)
	}
}

func TestAPinnedClientKeepsItsCounts(t *testing.T) {
	c := newClients(2)
	before := c.of("shop")
	c.pin([]string{"shop"})
	if c.of("shop") != before {
		t.Errorf("%q is counted elsewhere", "shop")
	}
	c.pin(nil)
	if c.of("shop") != before {
		t.Errorf("%q is counted elsewhere", "shop")
	}
}

func TestClientsNamedOtherOrNothingAreCountedAsOther(t *testing.T) {
	c := newClients(2)
	c.pin([]string{Other, ""})
	if c.of(Other) != c.other {
		t.Errorf("%q is counted elsewhere", Other)
	}
	if c.of("") != c.other {
		t.Errorf("%q is counted elsewhere", "")
	}
	haveLabels(t, c, Other)
	if c.has(Other) {
		t.Error("other has a label of its own")
	}
}

func TestABusyClientTakesTheLabelOfAQuietOne(t *testing.T) {
	c := newClients(2)
	c.rotate(noon)
	ask(c, "steady", 100)
	ask(c, "quiet", 3)
	ask(c, "loud", 50)
	c.rotate(noon.Add(rotateEvery - time.Second))
	hasLabel(t, c, "loud", Other)
	c.rotate(noon.Add(rotateEvery))
	haveLabels(t, c, "steady", "loud", Other)
}

func TestALabelDoesNotFlutterBetweenEquals(t *testing.T) {
	c := newClients(1)
	c.rotate(noon)
	ask(c, "first", 50)
	ask(c, "second", 60)
	c.rotate(noon.Add(rotateEvery))
	haveLabels(t, c, "first", Other)
}

func TestAtMostATenthOfTheLabelsChangeHandsAtOnce(t *testing.T) {
	c := newClients(100)
	c.rotate(noon)
	for i := range 100 {
		ask(c, "old"+strconv.Itoa(i), 1)
	}
	for i := range 50 {
		ask(c, "new"+strconv.Itoa(i), 100)
	}
	c.rotate(noon.Add(rotateEvery))
	kept := 0
	for i := range 100 {
		if c.has("old" + strconv.Itoa(i)) {
			kept++
		}
	}
	check.Equal(t, "old clients that kept their label", kept, 90)
}

// A million names must not create more labels than the bound, and the one busy name must be found
// among them.
func TestAMillionNamesStayInsideTheBound(t *testing.T) {
	const most, names = 100, 1_000_000
	c := newClients(most)
	c.rotate(noon)
	buf := make([]byte, 0, 16)
	for i := range names {
		buf = strconv.AppendInt(append(buf[:0], 'n'), int64(i), 10)
		c.of(string(buf))
		if i%100 == 0 {
			c.of("busiest")
		}
	}
	c.rotate(noon.Add(rotateEvery))
	if n := len(labels(c)); n != most+1 || !c.has("busiest") {
		t.Errorf("%d labels, want %d; the busiest has one: %v", n, most+1, c.has("busiest"))
	}
}

func TestLabelsStayInsideTheBoundWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(0, 5).Draw(t, "most")
		c := newClients(most)
		now, pinned := noon, []string{}
		name := rapid.StringMatching(`[a-h]`)
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) { ask(c, name.Draw(t, "id"), rapid.IntRange(1, 9).Draw(t, "times")) },
			"pin": func(t *rapid.T) {
				pinned = rapid.SliceOfNDistinct(name, 0, most, rapid.ID[string]).Draw(t, "ids")
				c.pin(pinned)
			},
			"rotate": func(*rapid.T) { now = now.Add(rotateEvery); c.rotate(now) },
			"": func(t *rapid.T) {
				if n := len(labels(c)) - 1; n > most {
					t.Fatalf("%d labels, bound %d, %d pinned", n, most, len(pinned))
				}
				for _, id := range pinned {
					if !c.has(id) {
						t.Fatalf("pinned client %s has no label", id)
					}
				}
			},
		})
	})
}

func TestClientsInManyGoroutines(t *testing.T) {
	c := newClients(8)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				c.of("client" + strconv.Itoa((g*i)%64)).decisions[0][0].Add(1)
				if i%100 == 0 {
					c.follow(func() PolicySnapshot { return &only{id: "client" + strconv.Itoa(i%7)} })
					c.rotate(noon.Add(time.Duration(i) * time.Minute))
				}
			}
		})
	}
	wg.Wait()
	if n := len(labels(c)); n > 9 {
		t.Errorf("%d labels, want at most 9", n)
	}
}

// only is a policy of one client.
type only struct{ id string }

func (o *only) Clients(int) []string         { return []string{o.id} }
func (o *only) Settings() ratelimit.Settings { return ratelimit.Settings{} }
func (o *only) For(string) *ratelimit.Effective {
	return &ratelimit.Effective{User: &ratelimit.Limits{}, Client: &ratelimit.Limits{}}
}

// The newest policies are read under the same lock that pins their clients. Otherwise concurrent
// scrapes could pin the clients of older policies until the policies change again.
func TestConcurrentScrapesPinTheNewest(t *testing.T) {
	m, err := New(prometheus.NewRegistry(), Options{MaxClients: 8})
	check.OK(t, err)
	var newest atomic.Pointer[only]
	newest.Store(&only{id: "client0"})
	m.WatchPolicies(func() PolicySnapshot {
		if m.clients.mu.TryLock() {
			m.clients.mu.Unlock()
			t.Error("the policies are read without the lock")
		}
		return newest.Load()
	})
	scrape := func() { m.emitLimits(func(Info, float64, ...string) {}) }
	var scrapes sync.WaitGroup
	for i := range 20 {
		scrapes.Go(scrape)
		newest.Store(&only{id: "client" + strconv.Itoa(i)})
	}
	scrapes.Wait()
	scrape()
	for id, held := range *m.clients.table.Load() {
		check.Equal(t, id+" is pinned", held.pinned.Load(), id == "client19")
	}
}

func TestRecentMax(t *testing.T) {
	var m recentMax
	loads := func(at time.Time, want float64) {
		t.Helper()
		if got := m.load(at); math.Abs(got-want) > 1e-6 {
			t.Errorf("load(%v) = %v, want %v", at, got, want)
		}
	}
	m.observe(noon, 0.5)
	m.observe(noon, 0.25)
	loads(noon, 0.5)
	m.observe(noon.Add(usageSlot), 0.75)
	loads(noon.Add(usageSlot), 0.75)
	m.observe(noon.Add(2*usageSlot), 0.1)
	loads(noon.Add(2*usageSlot), 0.75)
	loads(noon.Add(3*usageSlot), 0.1)
	loads(noon.Add(4*usageSlot), 0)
}
