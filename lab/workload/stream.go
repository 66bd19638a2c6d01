package workload

import (
	"time"

	"oauth-server/internal/simulate/traffic"
)

// never is the time of the next call of a stream that has ended.
const never = int64(1) << 62

// stream has the calls of a client in the order of their time. Times are nanoseconds from Start.
type stream struct {
	at     int64
	next   func(at int64) int64 // returns the time of the call after the one at at, never before at
	client string
	// weight is how many calls each call of a sample stands for; 0 and 1: only itself.
	weight int64
}

// merged has the calls of several streams in order. For calls at the same time, the order of the
// streams in the heap decides, which is the same in every run.
type merged struct {
	heap   []stream // the earliest first
	end    int64
	weight int64 // of the last call
}

// merge merges streams up to a time.
func merge(streams []stream, duration time.Duration) *merged {
	m := &merged{heap: streams, end: int64(duration)}
	for i := len(streams)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return m
}

// Next implements [traffic.Source].
func (m *merged) Next(r *traffic.Request) bool {
	s := &m.heap[0]
	at := s.at
	if at >= m.end {
		return false
	}
	*r = traffic.Request{At: Start.Add(time.Duration(at)), Client: s.client, Grant: "client_credentials"}
	m.weight = max(s.weight, 1)
	s.at = s.next(at)
	m.down(0)
	return true
}

// Weight returns how many requests the last one that Next yielded stands for.
func (m *merged) Weight() int64 { return m.weight }

// Answer implements [traffic.Source].
func (m *merged) Answer(*traffic.Request, traffic.Answer) {}

// Err implements [traffic.Source].
func (m *merged) Err() error { return nil }

// down moves a stream down to its place in the heap.
func (m *merged) down(i int) {
	h := m.heap
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].at < h[least].at {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
