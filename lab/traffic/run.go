package traffic

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure [Run].
type Options struct {
	// Targets are the URLs of the servers; requests go to them in turn.
	Targets     []string
	Credentials Credentials
	Clients     []Client
	// Scale multiplies all rates; 0 means 1.
	Scale float64
	// Seed makes the traffic repeatable: with the same seed and clients, the same requests are sent at
	// the same times after the start. 0 makes it random.
	Seed uint64
}

// Summary counts requests by client, then by outcome: the HTTP status ("200", "429"), "error"
// without an answer, "not sent" with too many requests in flight.
type Summary map[string]map[string]int

// String returns one line for each client.
func (s Summary) String() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%-12s", id)
		for _, outcome := range slices.Sorted(maps.Keys(s[id])) {
			fmt.Fprintf(&b, "  %s x %d", outcome, s[id][outcome])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Total returns the number of requests with that outcome, of all clients.
func (s Summary) Total(outcome string) (n int) {
	for _, outcomes := range s {
		n += outcomes[outcome]
	}
	return n
}

// run is the state of one call of [Run].
type run struct {
	Options
	client *http.Client
	posted atomic.Int64 // requests, to choose the next target

	mu      sync.Mutex
	summary Summary
}

// Run sends the requests of all clients until ctx ends, and returns a summary. Requests
// without an answer are counted in it, not returned as an error.
func Run(ctx context.Context, o Options) Summary {
	if o.Scale == 0 {
		o.Scale = 1
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64() //nolint:gosec // G404: random load, not a secret
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	r := &run{
		Options: o, summary: Summary{},
		client: &http.Client{Transport: transport, Timeout: 10 * time.Second},
	}
	var clients sync.WaitGroup
	start := time.Now()
	for i := range o.Clients {
		clients.Go(func() { r.simulate(ctx, &o.Clients[i], start) })
	}
	clients.Wait()
	return r.summary
}

// next returns the targets in turn.
func (r *run) next() string {
	return r.Targets[(r.posted.Add(1)-1)%int64(len(r.Targets))]
}

// maxInFlight bounds the requests of one client without an answer, so that they do not pile
// up at a server that hangs.
const maxInFlight = 32

// simulate sends the requests of one client at random times, as many independent users would
// (a Poisson process). The times follow from the seed alone: a delay does not move the requests
// after it.
func (r *run) simulate(ctx context.Context, c *Client, start time.Time) {
	random := rand.New(rand.NewPCG(r.Seed, seedOf(c.ID))) //nolint:gosec // G404: random load, not a secret
	inFlight := make(chan struct{}, maxInFlight)
	var sending sync.WaitGroup
	defer sending.Wait()
	users := c.users()
	for since := time.Duration(0); ; {
		rate := max(c.Rate(since)*r.Scale, 0.01)
		wait := time.Duration(random.ExpFloat64() / rate * float64(time.Second))
		if wait > time.Second { // a long pause is cut short: the rate may change meanwhile
			since += time.Second
			continue
		}
		since += wait
		next := c.choose(random, users)
		select {
		case <-ctx.Done():
			return
		case <-time.After(since - time.Since(start)):
		}
		select {
		case inFlight <- struct{}{}:
		default:
			r.count(c.ID, "not sent")
			continue
		}
		sending.Go(func() {
			defer func() { <-inFlight }()
			r.send(ctx, c, next)
		})
	}
}

func seedOf(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum64()
}

func (r *run) count(id, outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.summary[id] == nil {
		r.summary[id] = map[string]int{}
	}
	r.summary[id][outcome]++
}
