package metrics

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"oauth-server/internal/ratelimit"
)

// Decision counts a decision of the limiter. The outcome is one of [Allowed], [Denied],
// [WouldDeny] and [Trusted]; [CandidateWouldDeny] is counted in addition to one of these.
// It allocates nothing for a client that has a label.
func (m *Metrics) Decision(clientID, grantType, outcome string) {
	c := m.clients.of(clientID)
	c.decisions[indexOf(grantNames[:], grantType)][indexOf(outcomeNames[:], outcome)].Add(1)
}

// OutageDecision counts a decision that a limit's on_outage made, in addition to
// [Metrics.Decision]. The outcome is one of [Allowed], [Denied] and [WouldDeny]; others
// are not counted. It allocates nothing for a client that has a label.
func (m *Metrics) OutageDecision(clientID, outcome string) {
	if i := slices.Index(outageOutcomes[:], outcome); i >= 0 {
		m.clients.of(clientID).outage[i].Add(1)
	}
}

// SoftWarning counts a request let through above the soft ratio of a limit.
func (m *Metrics) SoftWarning(clientID, grantType string) {
	m.clients.of(clientID).soft[indexOf(grantNames[:], grantType)].Add(1)
}

// Usage records the share of its limit, 1 being the limit, that a key of the client uses
// now; with several limits, the highest share.
func (m *Metrics) Usage(clientID string, ratio float64) {
	m.clients.of(clientID).usage.observe(m.now(), ratio)
}

// PolicySnapshot is what metrics shows of the policies in force. [clientcfg.PolicySnapshot] is one.
type PolicySnapshot interface {
	// Settings are those of all clients and, by client_id, the policies that single
	// clients have.
	Settings() ratelimit.Settings
	// For returns what applies to a client.
	For(clientID string) *ratelimit.Effective
}

// WatchPolicies shows the limits, modes and trust of the snapshot that current returns.
// It is called at each scrape, must not block, and must be safe for concurrent use.
func (m *Metrics) WatchPolicies(current func() PolicySnapshot) { m.limits.policies.Store(&current) }

// limitCollector exports what is counted by client, and the policies in force.
type limitCollector struct {
	now      func() time.Time
	clients  *clients
	policies atomic.Pointer[func() PolicySnapshot]
}

var (
	decisionsDesc       = decisionsInfo.desc()
	outageDecisionsDesc = outageDecisionsInfo.desc()
	softWarningsDesc    = softWarningsInfo.desc()
	usageDesc           = usageInfo.desc()
	limitDesc           = limitInfo.desc()
	limitWindowDesc     = limitWindowInfo.desc()
	defaultLimitDesc    = defaultLimitInfo.desc()
	defaultWindowDesc   = defaultWindowInfo.desc()
	trustedDesc         = trustedInfo.desc()
	modeDesc            = modeInfo.desc()
	labelledDesc        = labelledInfo.desc()
)

// Describe implements prometheus.Collector.
func (l *limitCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		decisionsDesc, outageDecisionsDesc, softWarningsDesc, usageDesc, limitDesc, limitWindowDesc,
		defaultLimitDesc, defaultWindowDesc, trustedDesc, modeDesc, labelledDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. Labels are reassigned here too, so that the
// package needs no goroutine.
func (l *limitCollector) Collect(ch chan<- prometheus.Metric) {
	var policies PolicySnapshot
	if current := l.policies.Load(); current != nil {
		policies = (*current)()
		l.clients.pin(slices.Collect(maps.Keys(policies.Settings().Clients)))
	}
	now := l.now()
	l.clients.rotate(now)
	held := l.clients.all()
	for _, c := range held {
		collectCounts(ch, c)
		ch <- gauge(usageDesc, c.usage.load(now), c.label)
		if policies != nil && c.label != Other {
			collectEffective(ch, c.label, policies.For(c.label))
		}
	}
	ch <- gauge(labelledDesc, float64(len(held)-1))
	if policies != nil {
		all := policies.Settings().Default
		collectLimits(ch, defaultLimitDesc, defaultWindowDesc, all.User, "user")
		collectLimits(ch, defaultLimitDesc, defaultWindowDesc, all.Client, "client")
	}
}

// collectCounts exports every outcome of a grant once one was counted, and denied from
// the start for a client with a policy: increase() misses the first event of a series
// that does not begin at 0.
func collectCounts(ch chan<- prometheus.Metric, c *client) {
	for g, grant := range grantNames {
		used := c.usesGrant(g)
		for o, outcome := range outcomeNames {
			n := c.decisions[g][o].Load()
			if n > 0 || (used && outcome != Other) || (c.pinned && o == deniedIndex && grant != Other) {
				ch <- counter(decisionsDesc, n, c.label, grant, outcome)
			}
		}
		if n := c.soft[g].Load(); used || n > 0 {
			ch <- counter(softWarningsDesc, n, c.label, grant)
		}
	}
	collectOutage(ch, c)
}

// collectOutage exports the decisions of on_outage for a client that sent a request, from
// 0 on, so that increase() sees the first of an outage.
func collectOutage(ch chan<- prometheus.Metric, c *client) {
	if !c.isUsed() {
		return
	}
	for o, outcome := range outageOutcomes {
		ch <- counter(outageDecisionsDesc, c.outage[o].Load(), c.label, outcome)
	}
}

func collectEffective(ch chan<- prometheus.Metric, label string, e *ratelimit.Effective) {
	ch <- gauge(trustedDesc, truth(e.Trusted), label)
	ch <- gauge(modeDesc, 1, label, string(e.Mode))
	collectLimits(ch, limitDesc, limitWindowDesc, e.User.All(), label, "user")
	collectLimits(ch, limitDesc, limitWindowDesc, e.Client.All(), label, "client")
}

// collectLimits exports a list of limits with these labels and the name of each limit.
func collectLimits(ch chan<- prometheus.Metric, requests, window *prometheus.Desc, limits []ratelimit.Limit, labels ...string) {
	for _, l := range limits {
		named := append(slices.Clip(labels), l.Name)
		ch <- gauge(requests, float64(l.Requests), named...)
		ch <- gauge(window, l.Window.Seconds(), named...)
	}
}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func counter(d *prometheus.Desc, n uint64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}
