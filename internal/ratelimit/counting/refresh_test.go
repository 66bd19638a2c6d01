package counting

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestRefresh requests the document of a key that has nothing to write, but not of a key that is
// not in memory. Without a syncer it does nothing.
func TestRefresh(t *testing.T) {
	e := appliedBy(t, ratelimit.DefaultSettings().Default)
	c, k := NewCounters(0), ratelimit.Key{ClientID: "client", Username: "ann"}
	mustAdmit(t, 100, c, at(epoch), k, e)
	check.Equal(t, "without a syncer", c.Refresh(k, e), false)
	c = NewCounters(0)
	y := attach(c)
	check.Equal(t, "not in memory", c.Refresh(k, e), false)
	mustAdmit(t, 100, c, at(epoch), k, e)
	settle(c, at(epoch))
	check.Equal(t, "due before", len(y.Due(at(epoch), nil)), 0)
	check.Equal(t, "asked", c.Refresh(k, e), true)
	plans := y.Due(at(epoch), nil)
	check.Equal(t, "due after", len(plans), 1)
	task, ok := y.Begin(at(epoch), plans[0].Ticket, 99)
	check.Equal(t, "begins", ok, true)
	check.Equal(t, "reads", task.Read, true)
}

// TestSpread: the limit has room for one request of each other process in the spread time. A single
// process needs no spread.
func TestSpread(t *testing.T) {
	e := appliedBy(t, ratelimit.DefaultSettings().Default)
	c, k := NewCounters(0), ratelimit.Key{ClientID: "client", Username: "ann"}
	y := attach(c)
	mustAdmit(t, 100, c, at(epoch), k, e)
	check.Equal(t, "alone", c.Forecast(at(epoch), k, e).Spread(), 0)
	y.SetInstances(4)
	check.Equal(t, "of four", c.Forecast(at(epoch), k, e).Spread(), 3*600*time.Millisecond)
}
