package main

import (
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/cluster"
	"oauth-server/internal/simulate/workload"
	"oauth-server/lab/clusters"
)

// section is one of a page, and the studies that make it. The first of them draws a chart too, if there is one.
type section struct {
	file, name string
	chart      string
	studies    []study
}

// study is one with what stands above its tables.
type study struct {
	title string
	clusters.Study
}

const (
	clustersPage = "docs/simulate-clusters.md"
	scalePage    = "docs/scale.md"
)

var (
	ten     = []int{10}
	few     = []int{1, 10, 100}
	second  = cluster.Flush{Every: time.Second}
	plainly = cluster.Flush{Every: time.Second, Plain: true}
)

// limited returns a cluster with a limit of so many requests a minute.
func limited(requests int64) cluster.Config {
	return cluster.Config{Limit: ratelimit.NewLimit("limit", requests, time.Minute)}
}

// faulty returns ten instances with one user, who is offered twice the limit of 600 a minute, and what befalls them.
func faulty(title string, what func(c *cluster.Config), flushes ...cluster.Flush) study {
	c := limited(600)
	what(&c)
	return study{"10 instances, limit 600/60s, twice as many requests, " + title, clusters.Study{Config: c, Instances: ten, Rate: 2, Flushes: flushes}}
}

// spikes returns the traffic of clients that all ask for a token at the full hour.
func spikes(title string, balance cluster.Balance, instances []int, flushes ...cluster.Flush) study {
	c := limited(20)
	c.Duration, c.Balance = 2*time.Hour, balance
	spec := workload.Spec{Traffic: workload.Spikes, Clients: workload.RetryAfter}
	return study{title + ", limit 20/60s, traffic spikes, clients retry-after, 2 hours", clusters.Study{Config: c, Instances: instances, Spec: spec, Flushes: flushes}}
}

// many returns so many users, each with a hundredth of the limit of 100 a minute.
func many(title string, users int, balance cluster.Balance, instances []int, flushes ...cluster.Flush) study {
	c := limited(100)
	c.Duration, c.Balance = 2*time.Minute, balance
	return study{title + ", limit 100/60s, a hundredth as many requests, 2 minutes", clusters.Study{Config: c, Instances: instances, Rate: 0.01, Users: users, Flushes: flushes}}
}

func skewed(c *cluster.Config) {
	c.Skew = 5 * time.Minute
	c.Steps = []cluster.Step{{Instance: 0, At: 3 * time.Minute, By: time.Hour}, {Instance: 1, At: 5 * time.Minute, By: -time.Hour}}
}

func lossy(share float64) func(c *cluster.Config) {
	return func(c *cluster.Config) { c.Network.LoseRequest, c.Network.LoseReply = share, share }
}

func growing() cluster.Config {
	c := limited(3000)
	c.Duration = 4 * time.Minute
	return c
}

var sections = []section{
	{clustersPage, "plain", "docs/pictures/clusters-plain.svg", []study{{
		"10 instances, limit 3000/60s, 500 requests a second", clusters.Study{
			Config: limited(3000), Instances: ten, PerSecond: 500,
			Flushes: []cluster.Flush{second, {Every: 100 * time.Millisecond, Plain: true}, plainly, {Every: 10 * time.Second, Plain: true}},
		},
	}}},
	{clustersPage, "faults", "", []study{
		faulty("1 % of messages lost", lossy(0.01)),
		faulty("10 % of messages lost", lossy(0.1)),
		faulty("messages take 100 ms, and 100 ms longer on average", func(c *cluster.Config) {
			c.Network.Latency, c.Network.Jitter = 100*time.Millisecond, 100*time.Millisecond
		}),
		faulty("no database for five minutes after two", func(c *cluster.Config) {
			c.Network.Down = []cluster.Outage{{From: 2 * time.Minute, To: 7 * time.Minute}}
		}),
		faulty("clocks up to 5 minutes wrong, two of them set by an hour", skewed),
		faulty("clocks up to 5 minutes wrong, a plain interval", func(c *cluster.Config) { c.Skew = 5 * time.Minute }, plainly),
	}},
	{clustersPage, "bursts", "", []study{
		spikes("1 and 10 instances", cluster.Random, []int{1, 10}, second, plainly),
		spikes("10 instances, all requests of a user to one of them", cluster.Sticky, ten),
	}},
	{scalePage, "hot-key", "docs/pictures/clusters-growth.svg", []study{{
		"limit 3000/60s, 500 requests a second, 4 minutes", clusters.Study{Config: growing(), Instances: []int{1, 2, 5, 10, 20, 50, 100}, PerSecond: 500},
	}}},
	{scalePage, "many-keys", "", []study{
		many("a million users", 1_000_000, cluster.Random, few),
		many("a million users, each always at one instance", 1_000_000, cluster.Sticky, []int{100}),
		many("10,000 users", 10_000, cluster.Random, few),
		many("10,000 users, a plain interval", 10_000, cluster.Random, few, plainly),
	}},
}
