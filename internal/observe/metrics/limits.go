package metrics

import (
	"slices"
	"strings"
	"time"

	"oauth-server/internal/ratelimit"
)

// Decision counts a decision of the limiter. It allocates nothing for a client with a label.
func (m *Metrics) Decision(clientID, grantType string, o ratelimit.Outcome) {
	m.clients.of(clientID).decisions[indexOf(grantNames[:], grantType)][o].Add(1)
}

// CandidateDecision counts a request that a candidate would not have admitted at once, in addition to
// [Metrics.Decision].
func (m *Metrics) CandidateDecision(clientID, grantType string, o ratelimit.Outcome) {
	m.clients.of(clientID).tried[indexOf(grantNames[:], grantType)][o].Add(1)
}

// OutageDecision counts a decision by a limit's on_outage, in addition to [Metrics.Decision]. The
// outcome is Allowed, Denied or WouldDeny. Others are not counted. It allocates nothing for a client
// with a label.
func (m *Metrics) OutageDecision(clientID string, o ratelimit.Outcome) {
	if i := slices.Index(outageOutcomes[:], o); i >= 0 {
		m.clients.of(clientID).outage[i].Add(1)
	}
}

// LeaseWait counts a request that waited for permits of a strict limit or for the first read of its key.
// The outcome is Allowed or Denied.
func (m *Metrics) LeaseWait(o ratelimit.Outcome, waited time.Duration) {
	m.leaseWait.WithLabelValues(o.String()).Observe(waited.Seconds())
}

// Delay observes how long a request waited in the queue.
func (m *Metrics) Delay(d time.Duration) { m.delays.WithLabelValues().Observe(d.Seconds()) }

// WatchWaiting exports the result of read at each scrape.
func (m *Metrics) WatchWaiting(read func() int) {
	m.pull.watch("waiting", func(emit emit) { emit(waitingInfo, float64(read())) })
}

// SoftWarning counts a request admitted above the soft ratio of a limit.
func (m *Metrics) SoftWarning(clientID, grantType string) {
	m.clients.of(clientID).soft[indexOf(grantNames[:], grantType)].Add(1)
}

// Issued counts an issued access token. wasted is set if an equal token had more than half of its
// lifetime left.
func (m *Metrics) Issued(clientID, grantType string, wasted bool) {
	c, g := m.clients.of(clientID), indexOf(grantNames[:], grantType)
	c.issued[g].Add(1)
	if wasted {
		c.wasted[g].Add(1)
	}
}

// BanBegan counts a ban: one in force if o is Banned, or one in dry-run mode only if it is WouldBan.
func (m *Metrics) BanBegan(clientID string, o ratelimit.Outcome) {
	if i := slices.Index(banOutcomes[:], o); i >= 0 {
		m.clients.of(clientID).bans[i].Add(1)
	}
}

// Usage records the share of its limit that a key of the client uses now, where 1 is the limit.
// With several limits it is the highest share.
func (m *Metrics) Usage(clientID string, ratio float64) {
	m.clients.of(clientID).usage.observe(m.now(), ratio)
}

// PolicySnapshot holds the policies in force, as far as metrics show them. It is a pointer to an
// immutable value. [clientcfg.PolicySnapshot] implements it.
type PolicySnapshot interface {
	// Settings returns the settings of all clients.
	Settings() ratelimit.Settings
	// Clients returns the clients with their own policy. If there are more than most, it returns
	// only the trusted ones, and if these are also more than most, nothing.
	Clients(most int) []string
	// For returns the policy of a client.
	For(clientID string) *ratelimit.Effective
}

// WatchPolicies exports the limits, modes and trust of the snapshot that current returns. current
// is called at each scrape. It must not block and must be safe for concurrent use.
func (m *Metrics) WatchPolicies(current func() PolicySnapshot) { m.policies.Store(&current) }

// emitLimits exports the metrics by client and the policies in force. It also reassigns labels, so
// the package needs no goroutine.
func (m *Metrics) emitLimits(emit emit) {
	var policies PolicySnapshot
	if current := m.policies.Load(); current != nil {
		policies = m.clients.follow(*current)
	}
	now := m.now()
	m.clients.rotate(now)
	held := m.clients.all()
	for _, c := range held {
		c.emit(emit, now, policies != nil && policies.For(c.label).Wait.Longest > 0, policies != nil && policies.For(c.label).Bans() != nil)
		if policies != nil && c.label != Other {
			emitEffective(emit, c.label, policies.For(c.label))
		}
	}
	emit(labelledInfo, float64(len(held)-1))
	if policies != nil {
		all := policies.Settings().Default
		emitList(emit, defaultLimitInfo, defaultWindowInfo, all.User, "user")
		emitList(emit, defaultLimitInfo, defaultWindowInfo, all.Client, "client")
		emitList(emit, defaultLimitInfo, defaultWindowInfo, all.Total, "total")
		emitList(emit, defaultLimitInfo, defaultWindowInfo, all.Source, "source")
	}
}

// emit exports every outcome of a grant after one was counted, and denied from the start for a
// client with a policy, because increase() misses the first event of a series that does not begin
// at 0. For the same reason, other series begin at 0 too: on_outage decisions for a client that
// sent a request, delays for a client with requests that may wait, and bans for a client that can
// be banned.
func (c *client) emit(emit emit, now time.Time, waits, banned bool) {
	emit(usageInfo, c.usage.load(now), c.label)
	for g, grant := range grantNames {
		used := c.usesGrant(g)
		for o := range outcomes {
			possible := used && isPossible(o, grant, waits, banned)
			n, tried := c.decisions[g][o].Load(), c.tried[g][o].Load()
			if n > 0 || possible || c.pinned.Load() && o == ratelimit.Denied && grant != Other {
				emit(decisionsInfo, float64(n), c.label, grant, o.String())
			}
			if tried > 0 || possible && (o == ratelimit.WouldDeny || o == ratelimit.WouldReuse || o == ratelimit.WouldDelay || o == ratelimit.WouldBan) {
				emit(decisionsInfo, float64(tried), c.label, grant, "candidate_"+o.String())
			}
		}
		if n := c.soft[g].Load(); used || n > 0 {
			emit(softWarningsInfo, float64(n), c.label, grant)
		}
		if n := c.issued[g].Load(); n > 0 {
			emit(issuedInfo, float64(n), c.label, grant)
			emit(wastedInfo, float64(c.wasted[g].Load()), c.label, grant)
		}
	}
	for o, outcome := range banOutcomes {
		if n := c.bans[o].Load(); banned || n > 0 {
			emit(bansInfo, float64(n), c.label, outcome.String())
		}
	}
	if !c.isUsed() {
		return
	}
	for o, outcome := range outageOutcomes {
		emit(outageDecisionsInfo, float64(c.outage[o].Load()), c.label, outcome.String())
	}
}

// isPossible reports whether a decision on a request with the grant can have the outcome: only
// client_credentials get a token again, and only some clients have requests that wait or are banned.
func isPossible(o ratelimit.Outcome, grant string, waits, banned bool) bool {
	switch o {
	case ratelimit.Reused, ratelimit.WouldReuse:
		return grant == "client_credentials"
	case ratelimit.Delayed, ratelimit.WouldDelay:
		return waits
	case ratelimit.Banned, ratelimit.WouldBan:
		return banned
	default:
		return o != ratelimit.Passed
	}
}

func emitEffective(emit emit, label string, e *ratelimit.Effective) {
	emit(trustedInfo, truth(e.Trusted), label)
	emit(modeInfo, 1, label, string(e.Mode))
	emitList(emit, limitInfo, limitWindowInfo, e.User.All(), label, "user")
	emitList(emit, limitInfo, limitWindowInfo, e.Client.All(), label, "client")
	emitList(emit, limitInfo, limitWindowInfo, e.Total.All(), label, "total")
	emitList(emit, limitInfo, limitWindowInfo, e.Source.All(), label, "source")
}

// emitList exports a list of limits with these labels, and with the name of each limit and the
// grants that it counts.
func emitList(emit emit, requests, window Info, limits []ratelimit.Limit, labels ...string) {
	for _, l := range limits {
		named := append(slices.Clip(labels), l.Name, strings.Join(l.Grants.Names(), "+"))
		emit(requests, float64(l.Requests), named...)
		emit(window, l.Window.Seconds(), named...)
	}
}
