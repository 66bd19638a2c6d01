// Package clusters shows how exactly several instances keep a limit together, and what that costs. It runs the
// counters and the syncer of the server, in the simulated time of testing/synctest, with a store in memory. The
// network to the store is slow, loses messages or is down, and the clocks are wrong.
//
// Every request goes to one of the instances, which decides at once. The admitted requests are compared with an exact
// log of them, and with one counter that has all requests. Arrivals, latencies and losses follow from a seed. The order
// of what happens at the same moment is Go's, so two runs of a seed differ a little.
//
// The database is internal/syncer/memstore, which passes the suite of all stores. It has no elections and no load of its
// own, and never loses a confirmed write. A command takes as long as its two messages, whatever its size. Decisions take no
// time. All instances run from start to end. Strict limits and waiting requests are left out.
//
// `make clusters` runs the studies in sections_test.go and writes their tables, lab/results/clusters.txt, and the charts.
// Without -update, tests compare one of the studies with the committed tables. The columns:
//
//	FLUSH            when counts are shared. 1s is the server's rule: soon for keys near their limit, later for all
//	                 others. With plain:T every instance writes and reads every key in use every T
//	MEAN, WORST      admitted requests divided by the limit, in windows with at least the limit offered
//	FIRST            the maximum in the first of these windows, when no instance knows the key
//	LOG              the maximum in any window, by an exact log; above 1 with one instance, too, because of the algorithm
//	OF ONE           admitted by all instances, divided by what one instance admits of the same requests
//	FALSE DENIALS    denied requests that one shared counter would have admitted
//	COMMANDS/S       database commands of all instances, with heartbeats and clock readings; OF EACH: per instance
//	WRITES/ADMITTED  counter writes per admitted request; READS/ADMITTED: document reads
//	KIB/S            estimated bytes on the wire, without TLS and TCP
//	CONFLICTS        writes that lost to another instance; UNKNOWN: writes without a reply
//	KEYS OF EACH     the most keys in the memory of one instance
package clusters

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/traffic"
	"oauth-server/lab/workload"
)

// config is a cluster and its faults.
type config struct {
	instances int
	limit     ratelimit.Limit // of each key: a client and a user
	flush     flush
	network   network
	sticky    bool          // all requests of a user go to one instance; otherwise each to any
	skew      time.Duration // how far the wall clock of an instance may be wrong, in either direction
	steps     []step
	duration  time.Duration // how long requests are sent
	seed      uint64
}

// flush says when counts are written and read: by the rule of the server or, if plain, of every key at an interval.
type flush struct {
	every time.Duration
	plain bool
}

func (f flush) String() string {
	if f.plain {
		return "plain:" + f.every.String()
	}
	return f.every.String()
}

// rule names the rule in the legend of a chart.
func (f flush) rule() string {
	if f.plain {
		return "every " + f.every.String()
	}
	return "server's rule"
}

// step sets a wall clock.
type step struct {
	at       time.Duration // since the first request
	instance int
	by       time.Duration
}

// Times of a run.
const (
	warmUp   = 30 * time.Second // the instances start this long before the first request
	coolDown = 2 * time.Minute  // time between the last request and the stop of the instances
	stopTime = time.Minute      // time for the instances to write the rest
	points   = 120
)

// begin is when requests begin: where windows of all usual lengths do.
var begin = workload.Start

// cluster is a running cluster.
type cluster struct {
	cfg       config
	db        *database
	instances []*instance
	policy    *ratelimit.Effective
	truth     *truth
	rand      *rand.Rand
	stop      context.CancelFunc // of plain instances and the database

	result result
	cost   cost // up to the last point
	point  point
}

// run sends the requests of the source to a cluster in simulated time, and answers them. The test fails if a count
// is lost.
func run(t *testing.T, cfg config, src traffic.Source) (r *result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := start(t, cfg)
		var req traffic.Request
		for src.Next(&req) {
			c.runUntil(req.At)
			src.Answer(&req, c.request(&req))
		}
		c.end(req.At)
		r = &c.result
	})
	if r.unaccounted != 0 {
		t.Errorf("%d admitted requests are not accounted for", r.unaccounted)
	}
	return r
}

// start starts the instances of a cluster, so that all of them run when the requests begin.
func start(t *testing.T, cfg config) *cluster {
	t.Helper()
	sleepUntil(begin.Add(-warmUp))
	ctx, stop := context.WithCancel(t.Context())
	c := &cluster{
		cfg: cfg, stop: stop, db: newDatabase(ctx, cfg.network), policy: policyOf(t, cfg.limit, cfg.limit.Requests), truth: newTruth(t, &cfg),
		rand: rand.New(rand.NewPCG(cfg.seed, 0)),
	}
	for range cfg.instances {
		i := newInstance(c.db, &cfg, c.rand)
		c.instances = append(c.instances, i)
		i.start(ctx)
	}
	for _, s := range cfg.steps {
		time.AfterFunc(warmUp+s.at, func() { c.instances[s.instance].skew.Add(int64(s.by)) })
	}
	sleepUntil(begin)
	c.cost = c.costs()
	c.result.cost.add(&c.cost, -1)
	return c
}

func sleepUntil(at time.Time) { <-time.After(time.Until(at)) }

// policyOf returns the effective form of the limit with another number of requests.
func policyOf(t *testing.T, l ratelimit.Limit, requests int64) *ratelimit.Effective {
	t.Helper()
	l.Requests = requests
	e, err := ratelimit.Enforced(l, l)
	check.OK(t, err)
	return e
}

// runUntil lets time pass up to at, with all points in between.
func (c *cluster) runUntil(at time.Time) {
	for {
		next := begin.Add(c.point.at + c.cfg.duration/points)
		if next.After(at) {
			sleepUntil(at)
			return
		}
		sleepUntil(next)
		c.endPoint(next)
	}
}

// request sends a request to one of the instances.
func (c *cluster) request(r *traffic.Request) traffic.Answer {
	k := ratelimit.Key{ClientID: r.Client, Username: r.User}
	d := c.choose(k).take(k, c.policy)
	c.truth.request(r.At, k, !d.Rejected())
	c.result.requests++
	if d.Rejected() {
		return traffic.Answer{Outcome: traffic.Denied, RetryAfter: d.RetryAfter}
	}
	c.result.admitted++
	return traffic.Answer{Outcome: traffic.Admitted}
}

// choose returns the instance for the next request of a key.
func (c *cluster) choose(k ratelimit.Key) *instance {
	if !c.cfg.sticky {
		return c.instances[c.rand.IntN(len(c.instances))]
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(k.ClientID + " " + k.Username)) // never fails (hash.Hash)
	return c.instances[int(h.Sum32())%len(c.instances)]
}

// costs returns the calls of all instances to the store.
func (c *cluster) costs() (sum cost) {
	for _, i := range c.instances {
		sum.add(new(i.cost()), 1)
	}
	return sum
}

// endPoint ends a point, and begins the next one.
func (c *cluster) endPoint(now time.Time) {
	costs := c.costs()
	c.point.at, c.point.estimate, c.point.commands = now.Sub(begin), c.truth.endPoint(), costs.commands-c.cost.commands
	c.cost = costs
	c.result.points = append(c.result.points, c.point)
	for _, i := range c.instances {
		c.result.keysOfEach = max(c.result.keysOfEach, i.counters.Len())
	}
}

// end stops the cluster and completes its result. last is the time of the last request.
func (c *cluster) end(last time.Time) {
	c.endPoint(last)
	r := &c.result
	r.instances, r.lasted = len(c.instances), last.Sub(begin)
	r.windows = c.truth.end(begin.Add(max(r.lasted, c.cfg.duration)))
	r.log, r.falseDenials, r.admittedByOne = c.truth.log, c.truth.falseDenials, c.truth.oneAdmitted
	r.cost.add(&c.cost, 1)
	left := c.settle()
	for _, i := range c.instances {
		r.expired += i.counters.Stats().Expired
	}
	// A count that expired during its write may still have been written.
	missing := r.admitted - c.db.applied.Load() - left
	r.unaccounted = missing - min(max(missing, 0), r.expired)
}

// settle lets all messages arrive and stops the instances. It returns the number of requests that they could not
// write.
func (c *cluster) settle() (left int64) {
	c.db.repaired.Store(true)
	<-time.After(coolDown)
	c.stop()
	<-time.After(stopTime) // for flushes under way
	lefts := make([]int64, len(c.instances))
	var stopping sync.WaitGroup
	for n, i := range c.instances {
		stopping.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), stopTime)
			defer cancel()
			l, _ := i.syncer.Stop(ctx)
			lefts[n] = l.Requests
		})
	}
	stopping.Wait()
	for _, n := range lefts {
		left += n
	}
	return left
}
