package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
)

// Config is a cluster and its faults.
type Config struct {
	Instances int
	Limit     ratelimit.Limit // of each key: a client and a user
	Flush     Flush
	Network   Network
	Balance   Balance
	// Skew bounds how far the wall clock of an instance may be wrong, in either direction.
	Skew  time.Duration
	Steps []Step
	// MaxKeys bounds the keys that an instance keeps in memory. 0: ratelimit.DefaultMaxKeys.
	MaxKeys int
	// Duration is how long requests are sent, for the points of the result. It need not be exact.
	Duration time.Duration
	Seed     uint64
}

// Flush configures when counts are written and read.
type Flush struct {
	// Every is the flush interval of the syncer or, if Plain, of every key.
	Every time.Duration
	Plain bool
}

// String returns the flag of the flush.
func (f Flush) String() string {
	if f.Plain {
		return "plain:" + f.Every.String()
	}
	return f.Every.String()
}

// Network is the connection from the instances to the store.
type Network struct {
	// A message takes Latency, and longer by an exponentially distributed time with the mean Jitter.
	Latency, Jitter time.Duration
	// LoseRequest and LoseReply are the fractions of commands that lose their request, or their
	// reply.
	LoseRequest, LoseReply float64
	Down                   []Outage
}

// Outage is a period, since the first request, when no message arrives.
type Outage struct{ From, To time.Duration }

// Step sets a wall clock.
type Step struct {
	At       time.Duration // since the first request
	Instance int
	By       time.Duration
}

// Balance selects how requests are distributed to the instances.
type Balance string

// The balances. Skewed sends half of all requests to the first instance. Sticky sends all requests
// of a user to one instance.
const (
	Random     Balance = "random"
	RoundRobin Balance = "roundrobin"
	Skewed     Balance = "skewed"
	Sticky     Balance = "sticky"
)

// Balances returns all balances.
func Balances() []Balance { return []Balance{Random, RoundRobin, Skewed, Sticky} }

// Bounds of a simulated cluster.
const (
	MaxInstances = 1000
	MaxKeys      = 10_000_000
	MaxDuration  = 400 * 24 * time.Hour
)

// Validate returns all problems of the configuration.
func (c *Config) Validate() error {
	var errs fielderr.Errors
	check := func(ok bool, field, format string, args ...any) {
		if !ok {
			errs.Add(field, format, args...)
		}
	}
	check(c.Instances >= 1 && c.Instances <= MaxInstances, "instances", "%d is not from 1 to %d", c.Instances, MaxInstances)
	check(c.Flush.Every >= 10*time.Millisecond, "flush", "%v is less than 10ms", c.Flush.Every)
	check(c.Duration > 0 && c.Duration <= MaxDuration, "duration", "%v is not above 0, or above %v", c.Duration, MaxDuration)
	check(c.Network.Latency >= 0, "latency", "it is less than 0")
	check(c.Network.Jitter >= 0, "jitter", "it is less than 0")
	check(c.Skew >= 0, "skew", "it is less than 0; clocks are wrong by that much either way")
	check(part(c.Network.LoseRequest), "loss", "%g is not from 0 to less than 1", c.Network.LoseRequest)
	check(part(c.Network.LoseReply), "reply_loss", "%g is not from 0 to less than 1", c.Network.LoseReply)
	for _, o := range c.Network.Down {
		check(o.From >= 0 && o.To > o.From, "down", "it ends before it begins")
	}
	check(slices.Contains(Balances(), c.Balance), "balance", "%q is not random, roundrobin, skewed or sticky", c.Balance)
	for _, s := range c.Steps {
		check(s.Instance >= 0 && s.Instance < c.Instances, "step", "there is no instance %d", s.Instance+1)
		check(s.At >= 0 && (s.At <= c.Duration || c.Duration <= 0), "step", "%v is not in the %v that are simulated", s.At, c.Duration)
	}
	check(!c.Limit.Strict, "limit", "strict limits are not simulated")
	errs.AddUnreported(fielderr.Of(c.Limit.Validate()).Under("limit"))
	return errs.Err()
}

func part(p float64) bool { return p >= 0 && p < 1 }

// policy returns the effective form of the limit with another number of requests.
func (c *Config) policy(requests int64) (*ratelimit.Effective, error) {
	l := c.Limit
	l.Requests = requests
	s := ratelimit.DefaultSettings()
	s.Default = ratelimit.Policy{User: []ratelimit.Limit{l}, Client: []ratelimit.Limit{l}}
	compiled, err := ratelimit.Compile(s)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return compiled.For("any"), nil
}

var errNoRequests = errors.New("cluster: there are no requests")
