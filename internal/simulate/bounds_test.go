package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/traffic"
)

// made yields n requests that do makes.
type made struct {
	n, next int
	do      func(i int) traffic.Request
}

func (m *made) Next(r *traffic.Request) bool {
	if m.next == m.n {
		return false
	}
	*r = m.do(m.next)
	m.next++
	return true
}

func (*made) Answer(*traffic.Request, traffic.Answer) {}
func (*made) Err() error                              { return nil }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestFailuresOfMadeUpClients: a scan with made-up client IDs neither fills the memory nor takes
// the series of other clients.
func TestFailuresOfMadeUpClients(t *testing.T) {
	t.Parallel()
	const scan = maxFailing + 500
	source := &made{n: scan + 3, do: func(i int) traffic.Request {
		r := traffic.Request{At: noon.Add(time.Duration(i) * time.Millisecond), Client: fmt.Sprint("c", i), Failed: true}
		switch i - scan {
		case 0: // one that failed before
			r.Client, r.Failed = "c7", false
		case 1, 2: // the first takes the place of c7
			r.Client = fmt.Sprint("late", i)
		}
		return r
	}}
	trial := TrialOf("tried", ratelimit.DefaultLimit())
	r, err := Run(t.Context(), source, Options{Trials: []Trial{trial}})
	check.OK(t, err)
	check.Equal(t, "total", r.Total, Counts{Requests: 1, Admitted: 1, Failed: scan + 2})
	check.Equal(t, "total of a trial", r.WhatIf[0].Counts, r.Total)
	check.Equal(t, "clients", r.ClientCount, maxFailing+1)
	check.Equal(t, "note", slices.ContainsFunc(r.Notes, func(n string) bool {
		return strings.HasPrefix(n, "501 failed requests are only in the total")
	}), true)
	check.Equal(t, "c7", []uint64{r.Clients[0].Requests, r.Clients[0].Failed}, []uint64{1, 1})
	check.Equal(t, "its series", r.Clients[0].Series != nil, true)
}

// TestFullTemporaryDirectory: the requests are still decided. Results that need to read them again
// are left out.
func TestFullTemporaryDirectory(t *testing.T) {
	t.Parallel()
	s, err := newSpill()
	check.OK(t, err)
	check.OK(t, s.file.Close()) // behaves like a full disk
	o := Options{Trials: []Trial{TrialOf("tried", ratelimit.DefaultLimit())}}
	r := &run{Options: o.withDefaults(), ctx: t.Context(), spill: s}
	policies, err := r.check()
	check.OK(t, err)
	for _, n := range []int{10, 100_000} { // the error comes at the end, or before
		result, err := r.all(policies, &made{n: n, do: func(i int) traffic.Request {
			return traffic.Request{At: noon, Client: "shop", User: fmt.Sprint("u", i)}
		}})
		check.ErrorSays(t, err, "store the requests in a temporary file")
		check.Equal(t, "judged", result.Total.Requests, uint64(n))
		check.Equal(t, "nothing is compared", len(result.WhatIf), 0)
	}
}

// TestSweeps: the counts of keys that are gone are dropped, even if each request has a new key.
func TestSweeps(t *testing.T) {
	t.Parallel()
	settings := ratelimit.DefaultSettings()
	settings.Clients = map[string]ratelimit.Policy{}
	const clients = 20_000
	for i := range clients {
		settings.Clients[fmt.Sprint("c", i)] = ratelimit.Policy{OverLimit: ratelimit.OverLimitReuse}
	}
	compiled, err := (&Policies{Settings: settings}).Compile()
	check.OK(t, err)
	o := Options{TokenLifetime: time.Minute}.withDefaults()
	e, err := newEngine(context.Background(), compiled, &o, (*made)(nil).Answer)
	check.OK(t, err)
	for i := range clients {
		e.take(&traffic.Request{At: noon.Add(time.Duration(i) * time.Second / 10), Client: fmt.Sprint("c", i), Grant: clientCredentials})
	}
	check.Equal(t, "counters of a few minutes", e.counters.Len() < clients/4, true)
	check.Equal(t, "last tokens of a few minutes", len(e.last) < clients/4, true)
}

// TestTimersOfOneTime: timers due at the same time fire in the order in which they were set.
func TestTimersOfOneTime(t *testing.T) {
	t.Parallel()
	c := clock{fired: func() {}}
	var fired []int
	for i := range 20 {
		c.AfterFunc(time.Second, func() { fired = append(fired, i) })
	}
	c.drain()
	check.Equal(t, "in order", slices.IsSorted(fired), true)
}

// TestAtLeast: a share that is slightly off because of rounding counts as the intended one.
func TestAtLeast(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		percent float64
		n, want uint64
	}{{99.9, 1000, 999}, {55, 100, 55}, {7, 100, 7}, {14, 100, 14}, {99.9, 999, 999}, {100, 3, 3}, {50, 0, 0}} {
		check.Equal(t, fmt.Sprintf("%v %% of %d", tt.percent, tt.n), atLeast(tt.percent/100, tt.n), tt.want)
	}
}
