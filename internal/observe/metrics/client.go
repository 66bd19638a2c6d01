package metrics

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
)

// outcomes is the number of outcomes of a rate limit decision.
const outcomes = ratelimit.WouldBan + 1

// Other is the label value of everything without its own value.
const Other = "other"

// grantNames are the label values of grants. The last one counts everything unexpected, which keeps
// the totals right and the number of series bounded.
var grantNames = [...]string{"authorization_code", "client_credentials", "refresh_token", "password", Other}

// outageOutcomes are the outcomes of decisions by a limit's on_outage.
var outageOutcomes = [...]ratelimit.Outcome{ratelimit.Allowed, ratelimit.Denied, ratelimit.WouldDeny}

// banOutcomes are the outcomes of a ban: in force, or dry-run only.
var banOutcomes = [...]ratelimit.Outcome{ratelimit.Banned, ratelimit.WouldBan}

// indexOf returns the index of name, or the last index.
func indexOf(names []string, name string) int {
	if i := slices.Index(names, name); i >= 0 {
		return i
	}
	return len(names) - 1
}

// client holds the counts of one label value. Its fields are atomic unless they are guarded by
// clients.mu.
type client struct {
	label     string
	seenHits  uint64      // guarded by clients.mu: hits at the last rotation
	pinned    atomic.Bool // named by a policy
	hits      atomic.Uint64
	decisions [len(grantNames)][outcomes]atomic.Uint64
	tried     [len(grantNames)][outcomes]atomic.Uint64 // by candidates
	outage    [len(outageOutcomes)]atomic.Uint64
	soft      [len(grantNames)]atomic.Uint64
	issued    [len(grantNames)]atomic.Uint64
	wasted    [len(grantNames)]atomic.Uint64
	bans      [len(banOutcomes)]atomic.Uint64
	usage     recentMax
}

// isUsed reports whether any decision was counted for the client.
func (c *client) isUsed() bool {
	for g := range c.decisions {
		if c.usesGrant(g) {
			return true
		}
	}
	return false
}

// usesGrant reports whether any decision was counted for the grant.
func (c *client) usesGrant(grant int) bool {
	for o := range c.decisions[grant] {
		if c.decisions[grant][o].Load()+c.tried[grant][o].Load() > 0 {
			return true
		}
	}
	return false
}

// recentMax is the highest value of the current and the previous time slot. Reading does not change
// it, so two scrapers see the same maximum.
type recentMax struct {
	// Two slots, by parity. Each holds the slot's number in its upper half and the bits of a
	// float32 in its lower half. For values that are not negative, these numbers have the same
	// order as the pairs.
	slots [2]atomic.Uint64
}

const usageSlot = 30 * time.Second

func slotOf(now time.Time) uint64 {
	return uint64(max(now.Unix(), 0)) / uint64(usageSlot/time.Second)
}

func (m *recentMax) observe(now time.Time, v float64) {
	if !(v >= 0) { // NaN too
		return
	}
	slot := slotOf(now)
	next := slot<<32 | uint64(math.Float32bits(float32(v)))
	cell := &m.slots[slot%2]
	for {
		old := cell.Load()
		if old >= next || cell.CompareAndSwap(old, next) {
			return
		}
	}
}

func (m *recentMax) load(now time.Time) float64 {
	highest := float32(0)
	for i := range m.slots {
		packed := m.slots[i].Load()
		if packed>>32+1 >= slotOf(now) {
			highest = max(highest, math.Float32frombits(uint32(packed&math.MaxUint32)))
		}
	}
	return float64(highest)
}
