package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// The kinds of traffic.
const (
	// Poisson calls come at random times, independent of each other, at the rate for each client.
	Poisson = "poisson"
	// Pareto has pauses between the calls of a client from a Pareto distribution (shape 1.5): most
	// are short, some very long.
	Pareto = "pareto"
	// LogNormal has pauses from a log-normal distribution (sigma 1.5): bursts and pauses.
	LogNormal = "lognormal"
	// Wander has calls at random times, at a rate that wanders about the given one within minutes.
	Wander = "wander"
	// Edge is a client that exploits where frames begin: as many calls as the limit at the end of a
	// window, a hundred a second through the next, then a pause. The rate does not matter.
	Edge = "edge"
	// Spikes are calls at random times and, in the seconds after each full hour, three times the
	// limit of each client in addition.
	Spikes = "spikes"
	// Zipf has users of clients. Few of both call often and many seldom (exponent 1.1). The rate is
	// the rate of the busiest user.
	Zipf = "zipf"
	// Attack has calls at random times and, in the middle third of the time, one more client at 50
	// times the limit.
	Attack = "attack"
	// Mix has many sources, as a large proxy sees them: rates from a log-normal distribution (sigma
	// 1), bursts and pauses, and one source in 27,000 at 3 to 10 times the limit. The rate is the
	// mean of the others. Of those below half of the limit one in a hundred is simulated, and counted
	// a hundred times.
	Mix = "mix"
)

// kind has the usual values of a kind of traffic.
type kind struct {
	number   int // of clients
	rate     float64
	duration time.Duration
	calls    float64 // average of each client, which determines the usual duration; 0: use duration
	streams  func(s *Spec) []stream
}

var kinds = map[string]kind{
	Poisson:   {1, 1, 24 * time.Hour, 0, poissonStreams},
	Pareto:    {1, 1, 24 * time.Hour, 0, paretoStreams},
	LogNormal: {1, 1, 24 * time.Hour, 0, logNormalStreams},
	Wander:    {1, 1, time.Hour, 0, wanderStreams},
	Edge:      {1, 1, time.Hour, 0, edgeStreams},
	Spikes:    {50, 0.3, 6 * time.Hour, 0, spikeStreams},
	Zipf:      {1000, 2, time.Hour, 0, zipfStreams},
	Attack:    {50, 0.5, time.Hour, 0, attackStreams},
	Mix:       {270_000, 0.02, 0, mixCalls, mixStreams},
}

// mixCalls is a quarter of the calls that Cloudflare counted, 400 million requests of 270,000
// sources: a quarter of the time.
const mixCalls = 100e6 / 270e3

// each returns a stream for each client. pause returns a random pause with a given mean, in
// nanoseconds.
func (s *Spec) each(pause func(r *rand.Rand, mean float64) float64) []stream {
	mean := s.interval(s.Rate)
	streams := make([]stream, s.Number)
	for i := range streams {
		streams[i] = paused(s.random(i), mean, clientName(i), pause)
	}
	return streams
}

// paused returns the stream of one client.
func paused(r *rand.Rand, mean float64, client string, pause func(r *rand.Rand, mean float64) float64) stream {
	next := func(at int64) int64 { return later(at, pause(r, mean)) }
	return stream{at: next(0), next: next, who: itself(client)}
}

func clientName(i int) string { return fmt.Sprintf("client-%04d", i+1) }

// later returns the time after a pause. The pause may be very long.
func later(at int64, pause float64) int64 {
	if pause >= float64(never) {
		return never
	}
	return min(at+int64(pause), never)
}

func exponential(r *rand.Rand, mean float64) float64 { return r.ExpFloat64() * mean }

func poissonStreams(s *Spec) []stream { return s.each(exponential) }

// paretoShape is the shape of the pauses. Below 2 their variance is infinite, as measured for
// pauses in network traffic (Paxson and Floyd, Wide-Area Traffic: The Failure of Poisson Modeling,
// 1995).
const paretoShape = 1.5

func paretoStreams(s *Spec) []stream {
	return s.each(func(r *rand.Rand, mean float64) float64 {
		shortest := mean * (paretoShape - 1) / paretoShape
		return shortest / math.Pow(1-r.Float64(), 1/paretoShape)
	})
}

// logNormalSigma is the standard deviation of the logarithm of pauses.
const logNormalSigma = 1.5

func logNormalStreams(s *Spec) []stream { return s.each(logNormal) }

func logNormal(r *rand.Rand, mean float64) float64 {
	return mean * math.Exp(logNormalSigma*r.NormFloat64()-logNormalSigma*logNormalSigma/2)
}

// Parameters of the rate of wandering calls: an Ornstein-Uhlenbeck process of its logarithm.
const (
	wanderSigma = 0.35
	wanderTime  = 2 * time.Minute
)

func wanderStreams(s *Spec) []stream {
	streams := make([]stream, s.Number)
	for i := range streams {
		r, mean := s.random(i), s.interval(s.Rate)
		x := 0.0
		next := func(at int64) int64 {
			pause := r.ExpFloat64() * mean / math.Exp(x-wanderSigma*wanderSigma/2)
			keep := math.Exp(-pause / float64(wanderTime))
			x = x*keep + wanderSigma*math.Sqrt(1-keep*keep)*r.NormFloat64()
			return later(at, pause)
		}
		streams[i] = stream{at: next(0), next: next, who: itself(clientName(i))}
	}
	return streams
}
