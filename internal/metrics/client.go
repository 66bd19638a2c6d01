package metrics

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// The outcomes of a rate limit decision, as they stand on the label.
const (
	Allowed            = "allowed"
	Denied             = "denied"
	WouldDeny          = "would_deny"
	Trusted            = "trusted"
	CandidateWouldDeny = "candidate_would_deny"
)

// Other stands on a label for everything that has no label of its own.
const Other = "other"

// The label values in use; the last of each is for all that is not expected,
// so that nothing is lost and nothing is unbounded.
var (
	outcomeNames = [...]string{Allowed, Denied, WouldDeny, Trusted, CandidateWouldDeny, Other}
	grantNames   = [...]string{"authorization_code", "client_credentials", "refresh_token", "password", Other}
)

// outageOutcomes are the outcomes of a decision that a limit's on_outage made.
var outageOutcomes = [...]string{Allowed, Denied, WouldDeny}

// deniedIndex is the index of Denied in outcomeNames.
const deniedIndex = 1

// indexOf returns the index of name, or the last one.
func indexOf(names []string, name string) int {
	if i := slices.Index(names, name); i >= 0 {
		return i
	}
	return len(names) - 1
}

// client counts what one label value stands for. All its fields but those
// guarded by clients.mu are atomic.
type client struct {
	label     string
	pinned    bool   // guarded by clients.mu: named by a policy
	seenHits  uint64 // guarded by clients.mu: hits at the last rotation
	hits      atomic.Uint64
	decisions [len(grantNames)][len(outcomeNames)]atomic.Uint64
	outage    [len(outageOutcomes)]atomic.Uint64
	soft      [len(grantNames)]atomic.Uint64
	usage     recentMax
}

// isUsed reports whether anything was decided for the client.
func (c *client) isUsed() bool {
	for g := range c.decisions {
		if c.usesGrant(g) {
			return true
		}
	}
	return false
}

// usesGrant reports whether anything was decided for the grant.
func (c *client) usesGrant(grant int) bool {
	for o := range c.decisions[grant] {
		if c.decisions[grant][o].Load() > 0 {
			return true
		}
	}
	return false
}

// recentMax is the highest value seen in the current and the previous slot of
// time. Anybody may read it at any time without disturbing the next reader,
// which a maximum reset by each scrape would.
type recentMax struct {
	// Two slots, by parity. Each holds the slot's number in its upper half
	// and the bits of a float32 in its lower; for values that are not
	// negative, these order as the pairs do.
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
