package clusters

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"oauth-server/internal/simulate/traffic"
	"oauth-server/lab/page"
	"oauth-server/lab/workload"
)

// study is clusters that differ in the number of instances and in when they share counts, with the title of their
// tables. Zero values stand for what is in parentheses.
type study struct {
	title     string
	config    config // without instances and flush (latency 5 ms, 10 minutes, seed 1)
	instances []int
	flushes   []flush // (the rule of the server, each second)

	// The requests come from independent users who ignore the answers: rate in limits for each user, or so many per
	// second of all. With spikes they come at each full hour, and clients retry after Retry-After.
	rate, perSecond float64
	users           int // (1)
	spikes          bool

	rare float64 // how far numbers of rare events may differ between two runs (30)
}

// cell is one cluster of a study.
type cell struct {
	flush  flush
	result *result
}

// run simulates all clusters, one after the other.
func (s *study) run(t *testing.T) (all []cell) {
	t.Helper()
	flushes := s.flushes
	if len(flushes) == 0 {
		flushes = []flush{second}
	}
	for _, n := range s.instances {
		for _, f := range flushes {
			cfg := s.config
			cfg.instances, cfg.flush, cfg.seed = n, f, 1
			if cfg.network.latency == 0 {
				cfg.network.latency = 5 * time.Millisecond
			}
			if cfg.duration == 0 {
				cfg.duration = 10 * time.Minute
			}
			all = append(all, cell{f, run(t, cfg, s.requests(&cfg))})
		}
	}
	return all
}

func (s *study) requests(cfg *config) traffic.Source {
	l := cfg.limit
	if s.spikes {
		return workload.New(workload.Spec{
			Traffic: workload.Spikes, Retry: true, Requests: l.Requests, Window: l.Window, Duration: cfg.duration, Seed: cfg.seed,
		})
	}
	users := max(s.users, 1)
	return newPoisson(cfg, s.perSecond+s.rate*float64(users)*float64(l.Requests)/l.Window.Seconds(), users)
}

// poisson is requests of independent users of one client, at random times. They ignore the answers.
type poisson struct {
	duration time.Duration
	rate     float64 // requests per second of all users together
	rand     *rand.Rand
	names    []string
	at       time.Duration
}

func newPoisson(cfg *config, rate float64, users int) *poisson {
	p := &poisson{duration: cfg.duration, rate: rate, rand: rand.New(rand.NewPCG(cfg.seed, 2)), names: make([]string, users)}
	for i := range p.names {
		p.names[i] = "user-" + strconv.Itoa(i)
	}
	return p
}

// Next implements [traffic.Source].
func (p *poisson) Next(r *traffic.Request) bool {
	p.at += time.Duration(p.rand.ExpFloat64() / p.rate * float64(time.Second))
	if p.at > p.duration {
		return false
	}
	*r = traffic.Request{At: begin.Add(p.at), Client: "client", User: p.names[p.rand.IntN(len(p.names))], Grant: "refresh_token"}
	return true
}

// Answer implements [traffic.Source].
func (*poisson) Answer(*traffic.Request, traffic.Answer) {}

// Err implements [traffic.Source].
func (*poisson) Err() error { return nil }

// tables returns the results as two tables.
func tables(all []cell) string {
	exact := [][]string{{"INSTANCES", "FLUSH", "REQUESTS", "ADMITTED", "MEAN", "WORST", "FIRST", "LOG", "OF ONE", "FALSE DENIALS"}}
	costs := [][]string{{"INSTANCES", "FLUSH", "COMMANDS/S", "OF EACH", "WRITES/ADMITTED", "READS/ADMITTED", "KIB/S", "CONFLICTS", "UNKNOWN", "KEYS OF EACH"}}
	for _, one := range all {
		r, labels := one.result, []string{strconv.Itoa(one.result.instances), one.flush.String()}
		mean, worst, first := "-", "-", "-"
		if w := r.windows; w.count > 0 {
			mean, worst, first = inParts(w.mean), inParts(w.worst), inParts(w.first)
		}
		exact = append(exact, append(labels, whole(r.requests), whole(r.admitted), mean, worst, first,
			inParts(r.log), inParts(float64(r.admitted)/float64(max(r.admittedByOne, 1))), whole(r.falseDenials)))
		commands := r.perSecond(r.cost.commands)
		costs = append(costs, append(labels[:2:2], tenths(commands), tenths(commands/float64(r.instances)),
			inParts(r.perAdmitted(r.cost.writes)), inParts(r.perAdmitted(r.cost.reads)), tenths(r.perSecond(r.cost.bytes)/1024),
			whole(r.cost.conflicts), whole(r.cost.unknown), strconv.Itoa(r.keysOfEach)))
	}
	return page.Table(exact) + "\n" + page.Table(costs)
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func tenths(x float64) string { return fmt.Sprintf("%.1f", x) }

func inParts(x float64) string { return fmt.Sprintf("%.3f", x) }
