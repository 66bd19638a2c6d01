package cluster

import (
	"math/rand/v2"
	"strconv"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// Poisson generates requests: independent users of one client, at random times. They ignore the
// answers.
type Poisson struct {
	Begin    time.Time
	Duration time.Duration
	Rate     float64 // requests per second of all users together
	Users    int
	Seed     uint64

	rand  *rand.Rand
	names []string
	at    time.Duration
}

// Next implements [traffic.Source].
func (p *Poisson) Next(r *traffic.Request) bool {
	if p.rand == nil {
		p.init()
	}
	p.at += time.Duration(p.rand.ExpFloat64() / p.Rate * float64(time.Second))
	if p.at > p.Duration {
		return false
	}
	*r = traffic.Request{At: p.Begin.Add(p.at), Client: "client", User: p.names[p.rand.IntN(p.Users)], Grant: "refresh_token"}
	return true
}

func (p *Poisson) init() {
	p.rand = rand.New(rand.NewPCG(p.Seed, 2)) //nolint:gosec // repeatable
	p.names = make([]string, p.Users)
	for i := range p.names {
		p.names[i] = "user-" + strconv.Itoa(i)
	}
}

// Answer implements [traffic.Source].
func (*Poisson) Answer(*traffic.Request, traffic.Answer) {}

// Err implements [traffic.Source].
func (*Poisson) Err() error { return nil }
