package metrics

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func labels(c *clients) []string {
	var names []string
	for _, held := range c.all() {
		names = append(names, held.label)
	}
	return names
}

func ask(c *clients, id string, times int) {
	for range times {
		c.of(id)
	}
}

func TestClientsShareOtherWhenLabelsRunOut(t *testing.T) {
	c := newClients(2)
	require.Equal(t, "a", c.of("a").label)
	require.Equal(t, "b", c.of("b").label)
	require.Equal(t, Other, c.of("c").label)
	require.Equal(t, "a", c.of("a").label)
}

func TestPinnedClientsAlwaysHaveALabel(t *testing.T) {
	c := newClients(2)
	ask(c, "busy", 10)
	ask(c, "quiet", 1)
	c.pin([]string{"shop"})
	require.ElementsMatch(t, []string{"shop", "busy", Other}, labels(c))
	c.pin([]string{"shop", "app", "partner"}) // more than the bound
	require.ElementsMatch(t, []string{"shop", "app", "partner", Other}, labels(c))
	c.pin([]string{"app"})
	require.Contains(t, labels(c), "app")
	require.LessOrEqual(t, len(labels(c)), 3)
}

func TestAPinnedClientKeepsItsCounts(t *testing.T) {
	c := newClients(2)
	before := c.of("shop")
	c.pin([]string{"shop"})
	require.Same(t, before, c.of("shop"))
	c.pin(nil)
	require.Same(t, before, c.of("shop"))
}

func TestClientsNamedOtherOrNothingAreCountedAsOther(t *testing.T) {
	c := newClients(2)
	c.pin([]string{Other, ""})
	require.Same(t, c.other, c.of(Other))
	require.Same(t, c.other, c.of(""))
	require.Equal(t, []string{Other}, labels(c))
	require.False(t, c.has(Other))
}

func TestABusyClientTakesTheLabelOfAQuietOne(t *testing.T) {
	c := newClients(2)
	c.rotate(noon)
	ask(c, "steady", 100)
	ask(c, "quiet", 3)
	ask(c, "loud", 50)
	c.rotate(noon.Add(rotateEvery - time.Second))
	require.Equal(t, Other, c.of("loud").label, "labels changed hands too early")
	c.rotate(noon.Add(rotateEvery))
	require.ElementsMatch(t, []string{"steady", "loud", Other}, labels(c))
}

func TestALabelDoesNotFlutterBetweenEquals(t *testing.T) {
	c := newClients(1)
	c.rotate(noon)
	ask(c, "first", 50)
	ask(c, "second", 60)
	c.rotate(noon.Add(rotateEvery))
	require.ElementsMatch(t, []string{"first", Other}, labels(c))
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
	require.Equal(t, 90, kept)
}

// Ten million names must make no more labels than the bound, and the one that
// is truly busy must be found among them.
func TestTenMillionNamesStayInsideTheBound(t *testing.T) {
	const most, names = 100, 10_000_000
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
	require.Len(t, labels(c), most+1)
	require.True(t, c.has("busiest"))
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
				pinned = rapid.SliceOfNDistinct(name, 0, 8, rapid.ID[string]).Draw(t, "ids")
				c.pin(pinned)
			},
			"rotate": func(*rapid.T) { now = now.Add(rotateEvery); c.rotate(now) },
			"": func(t *rapid.T) {
				if n := len(labels(c)) - 1; n > max(most, len(pinned)) {
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
					c.pin([]string{"client" + strconv.Itoa(i%7)})
					c.rotate(noon.Add(time.Duration(i) * time.Minute))
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, len(labels(c)), 9)
}

func TestRecentMax(t *testing.T) {
	var m recentMax
	m.observe(noon, 0.5)
	m.observe(noon, 0.25)
	require.InDelta(t, 0.5, m.load(noon), 1e-6)
	m.observe(noon.Add(usageSlot), 0.75)
	require.InDelta(t, 0.75, m.load(noon.Add(usageSlot)), 1e-6)
	m.observe(noon.Add(2*usageSlot), 0.1)
	require.InDelta(t, 0.75, m.load(noon.Add(2*usageSlot)), 1e-6)
	require.InDelta(t, 0.1, m.load(noon.Add(3*usageSlot)), 1e-6)
	require.Zero(t, m.load(noon.Add(4*usageSlot)))
}
