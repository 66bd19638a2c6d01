package traffic

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options configure [Run].
type Options struct {
	// Targets are the servers' URLs; requests go to them in turn.
	Targets     []string
	Credentials Credentials
	Cast        []Member
	// Scale multiplies all rates; 0 means 1.
	Scale float64
}

// Summary counts the answers: by client, then by what came of the request ("200", "429",
// "error" where no answer came).
type Summary map[string]map[string]int

// String is one line for each client.
func (s Summary) String() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%-12s", id)
		for _, answer := range slices.Sorted(maps.Keys(s[id])) {
			fmt.Fprintf(&b, "  %s x %d", answer, s[id][answer])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Total is how many requests got that answer.
func (s Summary) Total(answer string) (n int) {
	for _, answers := range s {
		n += answers[answer]
	}
	return n
}

// run is one run under way.
type run struct {
	Options
	client *http.Client
	next   func() string // the target whose turn it is

	mu      sync.Mutex
	summary Summary
}

// Run sends requests until ctx ends, and tells what came of them. Servers that
// do not answer are no error; they are in the summary.
func Run(ctx context.Context, o Options) Summary {
	if o.Scale == 0 {
		o.Scale = 1
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	r := &run{
		Options: o, summary: Summary{}, next: inTurn(o.Targets),
		client: &http.Client{Transport: transport, Timeout: 10 * time.Second},
	}
	var playing sync.WaitGroup
	for i := range o.Cast {
		playing.Go(func() { r.play(ctx, &o.Cast[i]) })
	}
	playing.Wait()
	return r.summary
}

func inTurn(targets []string) func() string {
	var mu sync.Mutex
	i := -1
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		i = (i + 1) % len(targets)
		return targets[i]
	}
}

// maxUnanswered is how many requests of one client may be under way; a server
// that hangs must not be buried.
const maxUnanswered = 32

// play sends one client's requests at random times, as many independent people
// would (a Poisson process).
func (r *run) play(ctx context.Context, m *Member) {
	began := time.Now()
	under := make(chan struct{}, maxUnanswered)
	var sending sync.WaitGroup
	defer sending.Wait()
	users := r.users(m)
	for {
		rate := max(m.Rate(time.Since(began))*r.Scale, 0.01)
		wait := time.Duration(rand.ExpFloat64() / rate * float64(time.Second)) //nolint:gosec // only load
		select {
		case <-ctx.Done():
			return
		// A long pause is cut short, because the rate may have changed.
		case <-time.After(min(wait, time.Second)):
		}
		if wait > time.Second {
			continue
		}
		select {
		case under <- struct{}{}:
		default:
			r.count(m.ID, "not sent")
			continue
		}
		sending.Go(func() {
			defer func() { <-under }()
			r.send(ctx, m, users)
		})
	}
}

func (r *run) count(id, answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.summary[id] == nil {
		r.summary[id] = map[string]int{}
	}
	r.summary[id][answer]++
}
