package overload

import (
	"strconv"
	"testing"

	"oauth-server/internal/check"
)

// TestClientsAreForgotten checks that the table keeps only active clients, and stays within its
// size.
func TestClientsAreForgotten(t *testing.T) {
	var c clients
	once, often := &Request{ClientID: "once"}, &Request{ClientID: "often"}
	c.standing(once, 0)
	c.used("once", 1)
	c.standing(often, 0)
	c.nextPeriod()
	c.standing(often, 0)
	c.nextPeriod()
	if _, ok := c.of.Load("once"); ok || c.active.Load() != 1 {
		t.Errorf("%d clients are known, the silent one among them: %v", c.active.Load(), ok)
	}
	for i := range mostClients + 10 {
		c.standing(&Request{ClientID: "app", Source: strconv.Itoa(i)}, 0)
	}
	check.Equal(t, "clients kept", c.active.Load(), mostClients)
}

// TestUsageFades checks that a client with all requests refused here does not stay near its limit
// forever, and that the same holds for clients without room in the table.
func TestUsageFades(t *testing.T) {
	for name, known := range map[string]int64{"a client": 0, "one without room": mostClients} {
		t.Run(name, func(t *testing.T) {
			var c clients
			c.active.Store(known)
			r := &Request{ClientID: "shop"}
			for range 100 {
				c.used("shop", 1)
			}
			c.nextPeriod() // with decisions
			if got := c.standing(r, 0); got >= 4 {
				t.Errorf("near its limit: standing %d", got)
			}
			c.nextPeriod()
			if got := c.standing(r, 0); got < 4 {
				t.Errorf("a period without a decision later: standing %d", got)
			}
		})
	}
}

// TestStandingBySource checks that for a client that anyone can send requests as, the busiest
// source is refused first.
func TestStandingBySource(t *testing.T) {
	var c clients
	for range 1000 {
		c.standing(&Request{ClientID: "app", Source: "flood"}, 0)
	}
	flood, other := c.standing(&Request{ClientID: "app", Source: "flood"}, 0), c.standing(&Request{ClientID: "app", Source: "home"}, 0)
	if flood >= other {
		t.Errorf("standing %d of the flood, %d of another source", flood, other)
	}
}
