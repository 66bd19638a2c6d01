package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

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
		streams[i] = stream{at: window - n*apart, next: next, who: itself(clientName(i))}
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
		streams = append(streams, stream{at: next(0), next: next, who: itself(clientName(i))})
	}
	return streams
}

const (
	attackOf    = 50 // requests of the attacker in a window, as a multiple of the limit
	attackerID  = "attacker"
	attackParts = 3 // parts of the time; the attack is in the second
)

// attackStreams return one client that attacks, and the other clients.
func attackStreams(s *Spec) []stream {
	streams := s.each(exponential)
	r, mean := s.random(s.Number), s.interval(attackOf)
	from, to := int64(s.Duration)/attackParts, 2*int64(s.Duration)/attackParts
	next := func(at int64) int64 {
		if at = later(at, exponential(r, mean)); at >= to {
			return never
		}
		return at
	}
	return append(streams, stream{at: next(from), next: next, who: itself(attackerID)})
}

const (
	zipfExponent = 1.1
	zipfUsers    = 100 // maximum number of users of each client
)

// zipfStreams return one stream for all clients and their users.
func zipfStreams(s *Spec) []stream {
	r := s.random(0)
	clients, users := ranks(r, s.Number), ranks(r, zipfUsers)
	all := s.interval(s.Rate) * first(s.Number) * first(zipfUsers) // the busiest user of the busiest client has this share
	ids, names := make([]string, s.Number), make([]string, zipfUsers)
	for i := range ids {
		ids[i] = clientName(i)
	}
	for i := range names {
		names[i] = fmt.Sprintf("user-%03d", i+1)
	}
	next := func(at int64) int64 { return later(at, exponential(r, all)) }
	who := func() (string, string, string) {
		return ids[clients.Uint64()], names[users.Uint64()], "refresh_token"
	}
	return []stream{{at: next(0), next: next, who: who}}
}

func ranks(r *rand.Rand, n int) *rand.Zipf { return rand.NewZipf(r, zipfExponent, 1, uint64(n-1)) } //nolint:gosec // G115: n is at least 1

// first returns the share of rank 1 among n.
func first(n int) float64 {
	sum := 0.0
	for i := range n {
		sum += math.Pow(float64(i+1), -zipfExponent)
	}
	return 1 / sum
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
