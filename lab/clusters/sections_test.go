package clusters

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// section is a part of the results, and the studies that make it. The first of them draws a chart too, if there is one.
type section struct {
	name    string
	chart   string
	studies []study
}

var (
	ten     = []int{10}
	few     = []int{1, 10, 100}
	second  = flush{every: time.Second}
	plainly = plainEvery(time.Second)
)

func plainEvery(d time.Duration) flush { return flush{every: d, plain: true} }

// limited returns a cluster with a limit of so many requests a minute, for a duration.
func limited(requests int64, duration time.Duration) config {
	return config{limit: ratelimit.NewLimit("limit", requests, time.Minute), duration: duration}
}

// faulty returns ten instances with one user, who is offered twice the limit of 600 a minute, and what befalls them.
func faulty(title string, what func(c *config), flushes ...flush) study {
	c := limited(600, 0)
	what(&c)
	return study{title: "10 instances, limit 600/60s, twice the limit offered, " + title, config: c, instances: ten, rate: 2, flushes: flushes}
}

// spikes returns the traffic of clients that all ask for a token at the full hour.
func spikes(title string, sticky bool, instances []int, flushes ...flush) study {
	c := limited(20, 2*time.Hour)
	c.sticky = sticky
	return study{title: title + ", limit 20/60s, traffic spikes, clients retry-after, 2 hours", config: c, instances: instances, spikes: true, flushes: flushes}
}

// many returns so many users, each with a hundredth of the limit of 100 a minute.
func many(title string, users int, sticky bool, instances []int, flushes ...flush) study {
	c := limited(100, 2*time.Minute)
	c.sticky = sticky
	title += ", limit 100/60s, 1 % of the limit offered, 2 minutes"
	return study{title: title, config: c, instances: instances, rate: 0.01, users: users, flushes: flushes}
}

// published is the cluster of which wso2 published figures, with so many times the limit offered.
func published(offered string, times float64) study {
	l := ratelimit.NewLimit("limit", 1000, time.Second)
	l.Algorithm = ratelimit.Fixed
	return study{
		title:     "4 instances, limit 1000/1s in fixed windows, " + offered + " offered, 1 minute",
		config:    config{limit: l, network: network{latency: time.Millisecond}, duration: time.Minute},
		instances: []int{4}, perSecond: 1000 * times,
		flushes: []flush{second, plainEvery(10 * time.Millisecond), plainEvery(50 * time.Millisecond), plainEvery(100 * time.Millisecond)},
	}
}

// differing returns the study with another bound on how far numbers of rare events differ between two runs.
func (s study) differing(rare float64) study {
	s.rare = rare
	return s
}

func skewed(c *config) {
	c.skew = 5 * time.Minute
	c.steps = []step{{instance: 0, at: 3 * time.Minute, by: time.Hour}, {instance: 1, at: 5 * time.Minute, by: -time.Hour}}
}

func lossy(share float64) func(c *config) {
	return func(c *config) { c.network.loseRequest, c.network.loseReply = share, share }
}

var sections = []section{
	{"plain", "docs/pictures/clusters-plain.svg", []study{{
		title:  "10 instances, limit 3000/60s, 500 requests a second",
		config: limited(3000, 0), instances: ten, perSecond: 500,
		flushes: []flush{second, plainEvery(100 * time.Millisecond), plainly, plainEvery(10 * time.Second)},
	}}},
	{"faults", "", []study{
		faulty("1 % of messages lost", lossy(0.01)),
		faulty("10 % of messages lost", lossy(0.1)).differing(60),
		faulty("100 ms per message, and 100 ms mean jitter", func(c *config) {
			c.network.latency, c.network.jitter = 100*time.Millisecond, 100*time.Millisecond
		}),
		faulty("no database from minute 2 to 7", func(c *config) { c.network.down = []outage{{2 * time.Minute, 7 * time.Minute}} }),
		faulty("clocks up to 5 minutes wrong, two of them stepped by an hour", skewed),
		faulty("clocks up to 5 minutes wrong, a plain interval", func(c *config) { c.skew = 5 * time.Minute }, plainly),
	}},
	{"bursts", "", []study{
		spikes("1 and 10 instances", false, []int{1, 10}, second, plainly),
		spikes("10 instances, all requests of a user to one of them", true, ten),
	}},
	{"hot-key", "docs/pictures/clusters-growth.svg", []study{{
		title:  "limit 3000/60s, 500 requests a second, 4 minutes",
		config: limited(3000, 4*time.Minute), instances: []int{1, 2, 5, 10, 20, 50, 100}, perSecond: 500,
	}}},
	{"many-keys", "", []study{
		many("a million users", 1_000_000, false, few),
		many("a million users, each pinned to one instance", 1_000_000, true, []int{100}),
		many("10,000 users", 10_000, false, few),
		many("10,000 users, a plain interval", 10_000, false, few, plainly),
	}},
	{"cluster-2x", "", []study{published("2.00x", 2)}},
	{"cluster-4x", "", []study{published("4.00x", 4)}},
}
