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
	LogNormal: {1, 1, 24 * time.Hour, 0, logNormalStreams},
	Wander:    {1, 1, time.Hour, 0, wanderStreams},
	Edge:      {1, 1, time.Hour, 0, edgeStreams},
	Spikes:    {50, 0.3, 6 * time.Hour, 0, spikeStreams},
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
	return stream{at: next(0), next: next, client: client}
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
		streams[i] = stream{at: next(0), next: next, client: clientName(i)}
	}
	return streams
}

// edgeStreams exploit the edges of frames. The calls come at the end of a window, a millisecond
// apart or, for a large limit, in its last tenth; then evenly through the next window. A pause of
// one window follows.
func edgeStreams(s *Spec) []stream {
	window, n := int64(s.Window), s.Requests
	apart := min(int64(time.Millisecond), window/(10*n))
	const step = int64(10 * time.Millisecond)
	streams := make([]stream, s.Number)
	for i := range streams {
		next := func(at int64) int64 {
			round := at - at%(3*window)
			switch in := at - round; {
			case in < window-apart:
				return at + apart
			case in < window:
				return round + window
			case in+step < 2*window:
				return at + step
			default:
				return round + 4*window - n*apart
			}
		}
		streams[i] = stream{at: window - n*apart, next: next, client: clientName(i)}
	}
	return streams
}

const (
	spikeOf   = 3               // calls of a client in a spike, as a multiple of the limit
	spikeMean = 3 * time.Second // after the full hour
)

// spikeStreams return two streams for each client: the steady calls, and the calls of the spikes.
func spikeStreams(s *Spec) []stream {
	streams := s.each(exponential)
	n := s.calls(spikeOf)
	for i := range s.Number {
		r, left := s.random(s.Number+i), n
		next := func(at int64) int64 {
			if left == 0 {
				left = n
				at += int64(time.Hour) - at%int64(time.Hour)
			}
			// the first of left exponential times is earlier than a single one by that factor
			pause := exponential(r, float64(spikeMean)/float64(left))
			left--
			return later(at, pause)
		}
		left = 0
		streams = append(streams, stream{at: next(0), next: next, client: clientName(i)})
	}
	return streams
}

// Properties of a mix of sources.
const (
	mixSigma  = 1.0    // sigma of the logarithm of a source's rate
	mixPauses = 1.0    // sigma of the logarithm of its pauses
	mixAbuse  = 27_000 // one source in so many is abusive
	mixLeast  = 3.0    // minimum rate of an abusive source, as a multiple of the limit
	mixMost   = 10.0   // maximum rate
	mixFar    = 0.5    // fraction of the limit: sources below it are sampled
	mixSample = 100    // one of this many is simulated
)

// mixStreams draw the rates of all sources. They simulate only a sample of the sources that stay
// far below the limit. A request of the sample stands for several: these sources are most of the
// traffic, and are never limited. There are few sources near the limit and above it, and all of
// them are simulated.
func mixStreams(s *Spec) (streams []stream) {
	pause := func(r *rand.Rand, mean float64) float64 {
		return mean * math.Exp(mixPauses*r.NormFloat64()-mixPauses*mixPauses/2)
	}
	for i := range s.Number {
		r := s.random(i)
		rate := s.Rate * math.Exp(mixSigma*r.NormFloat64()-mixSigma*mixSigma/2)
		if i%mixAbuse == mixAbuse-1 {
			rate = mixLeast * math.Pow(mixMost/mixLeast, r.Float64())
		}
		weight := int64(1)
		if rate < mixFar {
			if i%mixSample != 0 {
				continue
			}
			weight = mixSample
		}
		one := paused(r, s.interval(rate), clientName(i), pause)
		one.weight = weight
		streams = append(streams, one)
	}
	return streams
}
