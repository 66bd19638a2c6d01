package overload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
)

// processor simulates one processor with a first-in-first-out queue, as in front of a Go server.
// Simplifications: no other process runs, work is never interrupted, and a class always costs the
// same.
type processor struct {
	shedder  *Shedder
	dice     *rand.Rand
	began    time.Time
	free     time.Duration // when the work that has arrived so far is done
	refusal  time.Duration // cost of a refusal
	patience time.Duration
	streams  []*stream
	queue    []arrival
	probe    time.Duration // when it was sent
	measured time.Duration // by the last probe that returned
	busy     time.Duration
}

// stream is a class of requests that arrive at random times.
type stream struct {
	class     Class
	client    string
	perSecond float64
	cost      time.Duration
	next      time.Duration

	sent, ok, shed int
	waits          []time.Duration
}

type arrival struct {
	at time.Duration
	of *stream // nil: the probe
}

func (p *processor) schedule(s *stream, from time.Duration) {
	s.next = from + time.Duration(p.dice.ExpFloat64()/s.perSecond*float64(time.Second))
}

// run simulates until the given time, while the streams send.
func (p *processor) run(from, until time.Duration) {
	for _, s := range p.streams {
		if s.perSecond > 0 {
			p.schedule(s, from)
		}
	}
	for at := from; at < until; at += beat {
		p.serve(at)
		wait := p.measured
		if p.probe >= 0 {
			wait = max(wait, at-p.probe)
		} else {
			p.probe = at
			p.queue = append(p.queue, arrival{at: at})
		}
		p.shedder.beat(p.began.Add(at), beat, wait)
		p.arrive(at + beat)
	}
	p.serve(until)
}

// arrive adds the requests sent until the given time.
func (p *processor) arrive(until time.Duration) {
	old := len(p.queue)
	for _, s := range p.streams {
		for s.perSecond > 0 && s.next < until {
			p.queue = append(p.queue, arrival{at: s.next, of: s})
			p.schedule(s, s.next)
		}
	}
	slices.SortFunc(p.queue[old:], func(a, b arrival) int { return int(a.at - b.at) })
}

// serve works on the queue until the given time.
func (p *processor) serve(until time.Duration) {
	for len(p.queue) > 0 {
		next := p.queue[0]
		start := max(p.free, next.at)
		if start >= until {
			return
		}
		p.queue = p.queue[1:]
		cost := 2 * time.Microsecond
		if next.of == nil {
			p.measured, p.probe = start-next.at, -1
		} else {
			cost = p.answer(next, start)
		}
		p.free = start + cost
		p.busy += cost
	}
}

func (p *processor) answer(a arrival, start time.Duration) time.Duration {
	s := a.of
	s.sent++
	if _, err := p.shedder.Admit(context.Background(), &Request{ClientID: s.client, Class: s.class}); err != nil {
		s.shed++
		return p.refusal
	}
	p.shedder.Leave()
	wait := start - a.at
	s.waits = append(s.waits, wait)
	if wait+s.cost <= p.patience {
		s.ok++
	}
	return s.cost
}

func newProcessor(refusal time.Duration, streams ...*stream) *processor {
	shedder := New(DefaultSettings(), nil)
	shedder.busy = func(time.Duration) bool { return true }
	return &processor{
		shedder: shedder, dice: rand.New(rand.NewPCG(1, 2)), began: time.Now(),
		refusal: refusal, patience: time.Second, streams: streams, probe: -1,
	}
}

func (s *stream) success() float64 { return float64(s.ok) / float64(max(1, s.sent)) }

func (s *stream) p99() time.Duration {
	if len(s.waits) == 0 {
		return 0
	}
	slices.Sort(s.waits)
	return s.waits[len(s.waits)*99/100]
}

// forget resets the figures.
func (p *processor) forget() {
	p.busy = 0
	for _, s := range p.streams {
		s.sent, s.ok, s.shed, s.waits = 0, 0, 0, nil
	}
}

// mix returns a load with refresh tokens as 0.4 of the work, client_credentials 0.5 and
// introspections 0.1.
func mix(load float64) (refresh, credentials, introspection *stream) {
	of := func(c Class, client string, share float64, cost time.Duration) *stream {
		return &stream{class: c, client: client, perSecond: share * load / cost.Seconds(), cost: cost}
	}
	return of(Refresh, "web", 0.4, 500*time.Microsecond), of(ClientCredentials, "batch", 0.5, 250*time.Microsecond),
		of(Introspection, "api", 0.1, 300*time.Microsecond)
}

// TestOverloadedProcessor checks that the processor stays busy, waits stay short, and the least
// critical requests are refused.
func TestOverloadedProcessor(t *testing.T) {
	for _, tt := range []struct {
		load                                float64
		refresh, credentials, introspection float64 // minimum success
		most                                float64 // maximum success of introspections
		wait                                time.Duration
	}{
		{load: 0.5, refresh: 1, credentials: 1, introspection: 1, most: 1, wait: 5 * time.Millisecond},
		{load: 0.9, refresh: 1, credentials: 1, introspection: 0.99, most: 1, wait: 12 * time.Millisecond},
		{load: 1.2, refresh: 0.999, credentials: 0.6, most: 0.2, wait: 100 * time.Millisecond},
		{load: 1.5, refresh: 0.99, credentials: 0.08, most: 0.01, wait: 100 * time.Millisecond},
		{load: 2, refresh: 0.52, most: 0.01, wait: 200 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(tt.load), func(t *testing.T) {
			refresh, credentials, introspection := mix(tt.load)
			p := newProcessor(100*time.Microsecond, refresh, credentials, introspection)
			p.run(0, 5*time.Second)
			p.forget()
			p.run(5*time.Second, 25*time.Second)
			for s, least := range map[*stream]float64{refresh: tt.refresh, credentials: tt.credentials, introspection: tt.introspection} {
				if s.success() < least || s.p99() > tt.wait {
					t.Errorf("%s: %.4f in time, want at least %.4f; waits p99 %v, want at most %v", s.class, s.success(), least, s.p99(), tt.wait)
				}
			}
			if got := introspection.success(); got > tt.most {
				t.Errorf("%.4f of the least critical requests succeed, want at most %.4f", got, tt.most)
			}
			if busy := p.busy.Seconds() / 20; tt.load > 1 && busy < 0.96 {
				t.Errorf("the processor is used %.3f of the time", busy)
			}
		})
	}
}

// TestUncontrolledProcessor applies the same load without the shedder. All requests are late.
func TestUncontrolledProcessor(t *testing.T) {
	refresh, credentials, introspection := mix(1.5)
	p := newProcessor(0, refresh, credentials, introspection)
	p.shedder.Set(Settings{Mode: ratelimit.Off})
	p.run(0, 10*time.Second)
	p.forget()
	p.run(10*time.Second, 20*time.Second)
	if got := refresh.success(); got > 0.01 {
		t.Errorf("%.3f succeed without control: the simulation is no overload", got)
	}
}

// TestRecovery checks that two seconds after an overload nothing is refused and waits are normal
// again.
func TestRecovery(t *testing.T) {
	refresh, credentials, introspection := mix(1.8)
	p := newProcessor(100*time.Microsecond, refresh, credentials, introspection)
	p.run(0, 10*time.Second)
	for _, s := range p.streams {
		s.perSecond *= 0.5 / 1.8
	}
	p.run(10*time.Second, 12*time.Second)
	p.forget()
	p.run(12*time.Second, 20*time.Second)
	for _, s := range p.streams {
		if s.shed > 0 || s.p99() > 5*time.Millisecond {
			t.Errorf("%s: %d refused of %d, waits p99 %v", s.class, s.shed, s.sent, s.p99())
		}
	}
}

// TestBursts checks that passwords hashed in the server, 37 ms each, cause no refused refreshes and
// only a few other refusals.
func TestBursts(t *testing.T) {
	refresh, credentials, introspection := mix(0.5)
	hash := &stream{class: Password, perSecond: 5, cost: 37 * time.Millisecond}
	p := newProcessor(100*time.Microsecond, refresh, credentials, introspection, hash)
	p.run(0, 30*time.Second)
	if refresh.shed > 0 || credentials.shed > credentials.sent/15 {
		t.Errorf("refused: %d refreshes of %d, %d of %d client_credentials", refresh.shed, refresh.sent, credentials.shed, credentials.sent)
	}
}

// TestWhoIsRefusedFirst checks that within a class, a client near its limit is refused before
// others, and clients that send little are refused last.
func TestWhoIsRefusedFirst(t *testing.T) {
	of := func(name string, share float64) *stream {
		return &stream{class: ClientCredentials, client: name, perSecond: share * 1.5 / 250e-6, cost: 250 * time.Microsecond}
	}
	near, greedy, modest := of("near", 0.2), of("greedy", 0.6), of("modest", 0.2)
	p := newProcessor(50*time.Microsecond, near, greedy, modest)
	for range 100 {
		p.shedder.Used("near", 0.95)
		p.shedder.Used("greedy", 0.3)
	}
	p.run(0, 5*time.Second)
	p.forget()
	p.run(5*time.Second, 15*time.Second)
	if near.success() > 0.1 || greedy.success() < 0.4 || greedy.success() > 0.95 || modest.success() < 0.99 {
		t.Errorf("in time: %.3f near its limit, %.3f that sends most, %.3f that sends little", near.success(), greedy.success(), modest.success())
	}
}

// TestDryRunRefusesNothing checks that dry-run refuses nothing, and counts at most half as refused,
// because it cannot know the share.
func TestDryRunRefusesNothing(t *testing.T) {
	refresh, credentials, introspection := mix(1.5)
	p := newProcessor(0, refresh, credentials, introspection)
	s := DefaultSettings()
	s.Mode = ratelimit.DryRun
	p.shedder.Set(s)
	p.run(0, 10*time.Second)
	st := p.shedder.Stats()
	var would, all uint64
	for c := range st.Requests {
		would += st.Requests[c][WouldShed]
		all += st.Requests[c][WouldShed] + st.Requests[c][Admitted]
	}
	if refresh.shed+credentials.shed+introspection.shed > 0 || would == 0 || would > all*6/10 {
		t.Errorf("%d refused, %d of %d would have been", refresh.shed+credentials.shed+introspection.shed, would, all)
	}
}
