package simulate

import (
	"context"
	"fmt"
	"net/netip"
	"os"
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

// TestSpill: the requests read are the requests added, to the microsecond. This also holds with
// more requests than numbers, and before 1970.
func TestSpill(t *testing.T) {
	s, err := newSpill()
	check.OK(t, err)
	at := time.Date(1969, 12, 31, 23, 59, 59, 123456000, time.UTC)
	var want []traffic.Request
	for i := range 3 * maxKnown {
		r := traffic.Request{At: at.Add(time.Duration(i) * time.Second), Client: fmt.Sprint("client", i%100)}
		switch i % 5 {
		case 0:
			r.Client = fmt.Sprint("client", i)
		case 1:
			r.User, r.Grant = fmt.Sprint("user", i), "refresh_token"
		case 2:
			r.Source, r.Failed = netip.MustParseAddr("2001:db8::7"), true
		case 3:
			r.Scope, r.Lifetime = fmt.Sprint("read ", i), -time.Hour
		case 4:
			r.Source, r.Unknown = netip.MustParseAddr("192.0.2.7"), true
		}
		want = append(want, r)
		check.OK(t, s.add(&r))
	}
	for range 2 {
		source, err := s.requests()
		check.OK(t, err)
		var got traffic.Request
		for i := range want {
			check.Equal(t, "is there", source.Next(&got), true)
			if got.At.Equal(want[i].At) {
				got.At = want[i].At
			}
			if got != want[i] {
				t.Fatalf("request %d is %+v, want %+v", i, got, want[i])
			}
		}
		check.Equal(t, "more", source.Next(&got), false)
		check.OK(t, source.Err())
	}
	check.OK(t, s.file.Truncate(1000))
	source, err := s.requests()
	check.OK(t, err)
	var n int
	for r := (traffic.Request{}); source.Next(&r); {
		n++
	}
	check.Equal(t, "fewer", n < len(want), true)
	check.ErrorSays(t, source.Err(), "read the temporary file again")
	check.OK(t, s.close())
	if _, err := os.Stat(s.file.Name()); err == nil {
		t.Error("the file is still there")
	}
}

// TestSeries: the parts grow with the time, and no request is lost.
func TestSeries(t *testing.T) {
	s := newSeries(10)
	noon := time.Date(2026, 3, 1, 12, 0, 7, 0, time.UTC)
	for i, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "12:00:07 1 [1]"},
		{9 * time.Second, "12:00:07 1 [1 0 0 0 0 0 0 0 0 1]"},
		{10 * time.Second, "12:00:05 5 [1 0 2]"},
		{time.Hour, "12:00:00 900 [3 0 0 0 1]"},
		{300 * 24 * time.Hour, ""},
	} {
		s.add(noon.Add(step.after), traffic.Denied)
		r := s.result(noon.Add(step.after))
		got := fmt.Sprintf("%s %v %v", r.Start.Format(time.TimeOnly), float64(r.Step), r.Refused)
		if step.want != "" {
			check.Equal(t, step.after.String(), got, step.want)
		}
		var sum uint64
		for _, n := range r.Requests {
			sum += n
		}
		check.Equal(t, "sum", sum, uint64(i+1))
		check.Equal(t, "few parts", len(r.Requests) <= 10, true)
	}
}

// TestUsers: the count is exact up to the bound, and then almost exact.
func TestUsers(t *testing.T) {
	u, a, b := newUsers(1000), &client{id: "a"}, &client{id: "b"}
	hash := func(i int) uint64 { return uint64(i+1) * 0x9e3779b97f4a7c15 }
	for i := range 900 {
		u.add(hash(i), a)
		u.add(hash(i), a)
	}
	check.Equal(t, "exact", u.byClient()[a], uint64(900))
	check.Equal(t, "estimated", u.estimated(), false)
	for i := 900; i < 20_000; i++ {
		u.add(hash(i), []*client{a, b}[i%4/3])
	}
	check.Equal(t, "estimated", u.estimated(), true)
	check.Equal(t, "kept", len(u.kept) <= 1000, true)
	if n := u.count(); n < 17_000 || n > 23_000 {
		t.Errorf("20,000 users are estimated as %d", n)
	}
	if n := u.byClient()[b]; n < 3_500 || n > 6_500 {
		t.Errorf("5,000 users of b are estimated as %d", n)
	}
}

// TestBlocked: a stretch ends with a request that passes, and after a pause.
func TestBlocked(t *testing.T) {
	b, c := blocked{}, &client{trouble: &trouble{}}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	b.refuse(c, 1, at(0), 10*time.Second)
	b.pass(1, at(5))
	check.Equal(t, "passes before it was told", c.trouble.longestBlocked, 5*time.Second)
	b.refuse(c, 1, at(100), 30*time.Second)
	b.refuse(c, 2, at(100), time.Second)
	b.refuse(c, 1, at(200), 10*time.Second)
	check.Equal(t, "blocked", c.trouble.blocked, 2)
	b.sweep(at(3000))
	check.Equal(t, "blocked", c.trouble.blocked, 2)
	b.pass(1, at(3000))
	check.Equal(t, "until one would have passed", c.trouble.longestBlocked, 110*time.Second)
	b.refuse(c, 2, at(101+3601), time.Second)
	check.Equal(t, "a pause", b[2].since, at(101+3601).UnixMilli())
	b.sweep(at(20_000))
	check.Equal(t, "blocked", c.trouble.blocked+len(b), 0)
}
