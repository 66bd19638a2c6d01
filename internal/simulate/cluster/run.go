package cluster

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/simtime"
	"oauth-server/internal/simulate/traffic"
)

// Bounds of a run.
const (
	warmUp   = 30 * time.Second // the instances start this long before the first request
	coolDown = 2 * time.Minute  // time between the last request and the stop of the instances
	stopTime = time.Minute      // time for the instances to write the rest
	points   = 120
)

// cluster is a running cluster.
type cluster struct {
	cfg       *Config
	loop      *simtime.Loop
	net       *network
	begin     time.Time // of the requests
	instances []*instance
	policy    *ratelimit.Effective
	judge     *judge
	rand      *rand.Rand
	turn      int // next instance of round robin
	stop      context.CancelFunc
	running   background.Tasks // plain instances

	result Result
	cost   Cost // up to the last point
	point  Point
}

// Run sends the requests of the source to a cluster, and answers them. It leaves out requests that
// failed for other reasons than a limit. The first request must not be before [time.Unix](0, 0).
// When ctx ends, Run returns its error.
func Run(ctx context.Context, cfg Config, src traffic.Source) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	var r traffic.Request
	if !src.Next(&r) {
		if err := src.Err(); err != nil {
			return nil, err
		}
		return nil, errNoRequests
	}
	c, err := start(&cfg, r.At) //nolint:contextcheck // what is simulated has contexts of its own
	if err != nil {
		return nil, err
	}
	defer c.loop.Close()
	last := r.At
	for more := true; more; more = src.Next(&r) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		last = r.At
		c.runUntil(r.At)
		if !r.Failed {
			src.Answer(&r, c.request(&r))
		}
	}
	if err := src.Err(); err != nil {
		return nil, err
	}
	return c.end(last) //nolint:contextcheck // as above
}

// start starts the instances of a cluster, so that all of them run when the requests begin.
func start(cfg *Config, begin time.Time) (*cluster, error) {
	c := &cluster{
		cfg: cfg, loop: simtime.New(begin.Add(-warmUp)), begin: begin,
		rand: rand.New(rand.NewPCG(cfg.Seed, 0)), //nolint:gosec // repeatable
	}
	var err error
	if c.policy, err = cfg.policy(cfg.Limit.Requests); err != nil {
		return nil, err
	}
	if c.judge, err = newJudge(cfg, begin); err != nil {
		return nil, err
	}
	c.net, c.running = newNetwork(c.loop, begin, cfg.Network), c.loop.NewTasks()
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	starting := c.loop.NewTasks()
	for number := range cfg.Instances {
		i := newInstance(c.net, number+1, cfg, c.rand)
		c.instances = append(c.instances, i)
		starting.Go(func() { i.start(ctx, c.running) })
	}
	for _, s := range cfg.Steps {
		c.loop.AfterFunc(warmUp+s.At, func() { c.instances[s.Instance].skew += s.By })
	}
	c.loop.RunUntil(begin)
	for _, i := range c.instances {
		i.seen.Cost.add(new(i.cost()), -1)
	}
	c.cost = c.costs()
	c.result.Cost.add(&c.cost, -1)
	return c, nil
}

// runUntil advances simulated time to at, with all points in between.
func (c *cluster) runUntil(at time.Time) {
	for {
		every := max(c.cfg.Duration/points, time.Millisecond)
		next := c.begin.Add(c.point.At + every)
		if next.After(at) {
			c.loop.RunUntil(at)
			return
		}
		c.loop.RunUntil(next)
		c.endPoint(c.point.At + every)
	}
}

// request sends a request to one of the instances.
func (c *cluster) request(r *traffic.Request) traffic.Answer {
	k := ratelimit.Key{ClientID: r.Client, Username: r.User}
	d := c.choose(cmp.Or(r.User, r.Client)).take(k, c.policy)
	c.judge.request(r.At, k, !d.Rejected())
	c.point.Requests++
	if d.Rejected() {
		return traffic.Answer{Outcome: traffic.Denied, RetryAfter: d.RetryAfter}
	}
	c.point.Admitted++
	return traffic.Answer{Outcome: traffic.Admitted}
}

// choose returns the instance for the next request of a user or, without a user, of the client
// itself.
func (c *cluster) choose(user string) *instance {
	n := len(c.instances)
	switch b := c.cfg.Balance; {
	case b == RoundRobin:
		c.turn = (c.turn + 1) % n
		return c.instances[c.turn]
	case b == Sticky:
		h := fnv.New32a()
		_, _ = h.Write([]byte(user)) // never fails (hash.Hash)
		return c.instances[int(h.Sum32())%n]
	case b == Skewed && c.rand.IntN(2) == 0:
		return c.instances[0]
	default:
		return c.instances[c.rand.IntN(n)]
	}
}

// costs returns the calls of all instances to the store.
func (c *cluster) costs() (sum Cost) {
	for _, i := range c.instances {
		sum.add(new(i.cost()), 1)
	}
	return sum
}

// endPoint ends a point, and begins the next one.
func (c *cluster) endPoint(at time.Duration) {
	now := c.costs()
	p := &c.point
	p.At, p.Seconds, p.Over = at, at.Seconds(), c.judge.endPoint()
	p.Cost = now
	p.Cost.add(&c.cost, -1)
	c.cost = now
	c.result.Points = append(c.result.Points, *p)
	c.result.Requests += p.Requests
	c.result.Admitted += p.Admitted
	c.point = Point{At: at}
	for _, i := range c.instances {
		i.seen.Keys = max(i.seen.Keys, i.counters.Len())
	}
}

// end stops the cluster and returns its result.
func (c *cluster) end(last time.Time) (*Result, error) {
	c.endPoint(last.Sub(c.begin))
	r := &c.result
	r.Instances, r.Lasted, r.Seconds = len(c.instances), last.Sub(c.begin), last.Sub(c.begin).Seconds()
	r.Denied, r.Keys = r.Requests-r.Admitted, len(c.judge.keys)
	r.Windows = c.judge.end(later(last, c.begin.Add(c.cfg.Duration)))
	r.Over, r.AdmittedByOne = c.judge.over, c.judge.oneAdmitted
	r.Cost.add(&c.cost, 1)
	for _, i := range c.instances {
		i.seen.Cost.add(new(i.cost()), 1)
		r.PerInstance = append(r.PerInstance, i.seen)
	}
	left := c.settle()
	for _, i := range c.instances {
		r.Expired += i.counters.Stats().Expired
	}
	// A count that expired during its write may still have been written.
	missing := r.Admitted - c.net.applied - left
	r.Unaccounted = missing - min(max(missing, 0), r.Expired)
	return r, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// settle lets all messages arrive and stops the instances. It returns the number of requests that
// they could not write.
func (c *cluster) settle() (left int64) {
	c.net.over = true
	c.loop.RunUntil(c.loop.Now().Add(coolDown))
	c.stop()
	stopping := c.loop.NewTasks()
	for _, i := range c.instances {
		stopping.Go(func() {
			ctx, cancel := c.loop.WithTimeout(context.Background(), stopTime)
			defer cancel()
			l, _ := i.syncer.Stop(ctx)
			left += l.Requests
		})
	}
	c.loop.RunUntil(c.loop.Now().Add(2 * stopTime))
	return left
}
