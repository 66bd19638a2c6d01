package metrics

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Decision counts what the limiter decided for a client. The outcome is one
// of [Allowed], [Denied], [WouldDeny] and [Trusted]; [CandidateWouldDeny] is
// counted in addition to one of these. It allocates nothing for a client that
// has a label.
func (m *Metrics) Decision(clientID, grantType, outcome string) {
	c := m.clients.of(clientID)
	c.decisions[indexOf(grantNames[:], grantType)][indexOf(outcomeNames[:], outcome)].Add(1)
}

// OutageDecision counts a decision that a limit's on_outage made, beside
// [Metrics.Decision]. The outcome is one of [Allowed], [Denied] and [WouldDeny]. It
// allocates nothing for a client that has a label.
func (m *Metrics) OutageDecision(clientID, outcome string) {
	if i := slices.Index(outageOutcomes[:], outcome); i >= 0 {
		m.clients.of(clientID).outage[i].Add(1)
	}
}

// SoftWarning counts a request let through above the soft ratio of a limit.
func (m *Metrics) SoftWarning(clientID, grantType string) {
	m.clients.of(clientID).soft[indexOf(grantNames[:], grantType)].Add(1)
}

// Usage notes the share of its limit that a key of the client uses now; with
// several limits, the highest share.
func (m *Metrics) Usage(clientID string, ratio float64) {
	m.clients.of(clientID).usage.observe(m.now(), ratio)
}

// Limit is one limit of a policy.
type Limit struct {
	Kind     string // "user" or "client"
	Name     string
	Requests float64 // per Window
	Window   time.Duration
}

// Policy is what applies to one client.
type Policy struct {
	Trusted bool
	Mode    string // enforce, dry_run or off
	Limits  []Limit
}

// PolicySource tells the policies in force. Its functions are called at each
// scrape and must be quick and safe for concurrent use.
type PolicySource struct {
	// Named returns the clients that have a policy of their own.
	Named func() []string
	// Default returns the limits of all others.
	Default func() []Limit
	// Of returns what applies to a client.
	Of func(clientID string) Policy
}

// WatchPolicies shows the limits, modes and trust in force.
func (m *Metrics) WatchPolicies(s PolicySource) { m.limits.policies.Store(&s) }

// limitCollector shows what is counted by client.
type limitCollector struct {
	now      func() time.Time
	clients  *clients
	policies atomic.Pointer[PolicySource]
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

// Collect implements prometheus.Collector. It is also the moment at which
// labels change hands, so that no loop of its own is needed.
func (l *limitCollector) Collect(ch chan<- prometheus.Metric) {
	policies := l.policies.Load()
	if policies != nil {
		l.clients.pin(policies.Named())
	}
	now := l.now()
	l.clients.rotate(now)
	held := l.clients.all()
	for _, c := range held {
		collectCounts(ch, c)
		ch <- gauge(usageDesc, c.usage.load(now), c.label)
		if policies != nil && c.label != Other {
			collectPolicy(ch, c.label, policies.Of(c.label))
		}
	}
	ch <- gauge(labelledDesc, float64(len(held)-1))
	if policies != nil {
		for _, d := range policies.Default() {
			ch <- gauge(defaultLimitDesc, d.Requests, d.Kind, d.Name)
			ch <- gauge(defaultWindowDesc, d.Window.Seconds(), d.Kind, d.Name)
		}
	}
}

// collectCounts shows every outcome of a grant once one was counted, and
// denied from the start for a client that a policy names: a series that begins
// at 0 lets increase() see its first event.
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

// collectOutage shows what on_outage decided of a client that was seen, from 0
// on, so that increase() sees the first of an outage.
func collectOutage(ch chan<- prometheus.Metric, c *client) {
	if !c.isUsed() {
		return
	}
	for o, outcome := range outageOutcomes {
		ch <- counter(outageDecisionsDesc, c.outage[o].Load(), c.label, outcome)
	}
}

func collectPolicy(ch chan<- prometheus.Metric, label string, p Policy) {
	trusted := 0.0
	if p.Trusted {
		trusted = 1
	}
	ch <- gauge(trustedDesc, trusted, label)
	ch <- gauge(modeDesc, 1, label, p.Mode)
	for _, limit := range p.Limits {
		ch <- gauge(limitDesc, limit.Requests, label, limit.Kind, limit.Name)
		ch <- gauge(limitWindowDesc, limit.Window.Seconds(), label, limit.Kind, limit.Name)
	}
}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func counter(d *prometheus.Desc, n uint64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}
