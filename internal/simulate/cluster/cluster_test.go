package cluster_test

import (
	"encoding/json"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/cluster"
	"oauth-server/internal/simulate/traffic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// config returns a cluster of five instances with a limit of 300 a minute for each user.
func config(change func(*cluster.Config)) cluster.Config {
	cfg := cluster.Config{
		Instances: 5, Limit: ratelimit.NewLimit("limit", 300, time.Minute), Flush: cluster.Flush{Every: time.Second},
		Network: cluster.Network{Latency: 5 * time.Millisecond, Jitter: 2 * time.Millisecond},
		Balance: cluster.Random, Duration: 4 * time.Minute, Seed: 1,
	}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

// run offers three users twice their limit.
func run(t *testing.T, cfg cluster.Config) *cluster.Result {
	t.Helper()
	r, err := cluster.Run(t.Context(), cfg, &cluster.Poisson{Begin: noon, Duration: cfg.Duration, Rate: 30, Users: 3, Seed: cfg.Seed})
	check.OK(t, err)
	return r
}

func asJSON(t *testing.T, r *cluster.Result) string {
	t.Helper()
	text, err := json.Marshal(r)
	check.OK(t, err)
	return string(text)
}

// TestRepeatable: a seed gives one result, whatever faults the cluster has.
func TestRepeatable(t *testing.T) {
	t.Parallel()
	results := map[string]int{}
	for _, seed := range []uint64{1, 1, 2, 2, 3} {
		r := run(t, config(func(c *cluster.Config) {
			c.Seed, c.Skew, c.Network.LoseRequest, c.Network.LoseReply = seed, 3*time.Second, 0.05, 0.05
			c.Network.Down = []cluster.Outage{{From: time.Minute, To: 80 * time.Second}}
		}))
		results[asJSON(t, r)]++
	}
	if len(results) != 3 {
		t.Errorf("%d results of three seeds", len(results))
	}
}

// TestAllIsAccountedForInShortWindows: a count can expire during its write, and is then in the
// store or not.
func TestAllIsAccountedForInShortWindows(t *testing.T) {
	t.Parallel()
	for _, window := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond} {
		r := run(t, config(func(c *cluster.Config) {
			c.Limit = ratelimit.NewLimit("short", 1, window)
			c.Duration = time.Minute
		}))
		if r.Unaccounted != 0 || r.Expired == 0 {
			t.Errorf("%v: %d of %d admitted requests are not accounted for, %d expired", window, r.Unaccounted, r.Admitted, r.Expired)
		}
	}
}

// TestSums: the whole is the sum of its parts.
func TestSums(t *testing.T) {
	t.Parallel()
	r := run(t, config(func(c *cluster.Config) { c.Balance = cluster.Skewed }))
	var points, instances cluster.Result
	for _, p := range r.Points {
		points.Requests += p.Requests
		points.Admitted += p.Admitted
		points.Cost.Commands += p.Cost.Commands
		points.Cost.Bytes += p.Cost.Bytes
		points.Over.Log = max(points.Over.Log, p.Over.Log)
	}
	for i, x := range r.PerInstance {
		instances.Requests += x.Requests
		instances.Admitted += x.Admitted
		instances.Cost.Commands += x.Cost.Commands
		instances.Cost.Bytes += x.Cost.Bytes
		if part := float64(x.Requests) / float64(r.Requests); i == 0 && part < 0.57 || i > 0 && (part < 0.07 || part > 0.13) || x.Keys != 3 {
			t.Errorf("instance %d has %.2f of the requests, %d keys", i, part, x.Keys)
		}
	}
	for what, sum := range map[string]cluster.Result{"points": points, "instances": instances} {
		if sum.Requests != r.Requests || sum.Admitted != r.Admitted || sum.Cost.Commands != r.Cost.Commands || sum.Cost.Bytes != r.Cost.Bytes {
			t.Errorf("of the %s: %d requests, %d admitted, %+v; want %+v", what, sum.Requests, sum.Admitted, sum.Cost, r)
		}
	}
	if len(r.Points) < 119 || len(r.Points) > 121 || points.Over.Log != r.Over.Log || r.Requests != r.Admitted+r.Denied || r.Keys != 3 {
		t.Errorf("%d points, %+v", len(r.Points), r)
	}
}

// answers is a source that records the answers it gets.
type answers struct {
	traffic.Source

	outcomes map[traffic.Outcome]int
	wrong    int
}

func (a *answers) Next(r *traffic.Request) bool {
	more := a.Source.Next(r)
	r.Failed = r.At.Nanosecond()%4 == 0
	return more
}

func (a *answers) Answer(r *traffic.Request, x traffic.Answer) {
	a.outcomes[x.Outcome]++
	if r.Failed || (x.Outcome == traffic.Denied) != (x.RetryAfter > 0) {
		a.wrong++
	}
}

// TestAnswers: the source gets the answers that a client would get. Requests that failed for
// another reason are not sent to the cluster.
func TestAnswers(t *testing.T) {
	t.Parallel()
	src := &answers{Source: &cluster.Poisson{Begin: noon, Duration: time.Minute, Rate: 30, Users: 1}, outcomes: map[traffic.Outcome]int{}}
	r, err := cluster.Run(t.Context(), config(nil), src)
	check.OK(t, err)
	if src.wrong > 0 || int64(src.outcomes[traffic.Admitted]) != r.Admitted || int64(src.outcomes[traffic.Denied]) != r.Denied || r.Denied == 0 {
		t.Errorf("%v, %d of them wrong; %+v", src.outcomes, src.wrong, r)
	}
	if r.Requests < 1200 || r.Requests > 1500 {
		t.Errorf("%d of about 1,800 requests have not failed", r.Requests)
	}
}

// TestInvalid: every problem is reported.
func TestInvalid(t *testing.T) {
	t.Parallel()
	_, err := cluster.Run(t.Context(), cluster.Config{
		Instances: 1001, Balance: "fair", Network: cluster.Network{LoseReply: 1, Down: []cluster.Outage{{From: 2, To: 1}}},
		Steps: []cluster.Step{{Instance: 1001}}, Limit: ratelimit.Limit{Strict: true},
	}, nil)
	for _, field := range []string{"instances", "balance", "reply_loss", "down", "step", "flush", "duration", "strict"} {
		check.ErrorSays(t, err, field)
	}
}
