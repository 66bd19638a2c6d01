package algorithm

import (
	"slices"

	"oauth-server/internal/simulate/traffic"
)

// exact is the log of the last window: it admits a request if fewer than the limit were admitted in the
// window that ends with it. It is the truth that the others approximate.
type exact struct {
	limit Limit
	logs  []log
}

// Admit implements [Algorithm].
func (e *exact) Admit(k Key, ms int64) traffic.Answer {
	l, window := of(&e.logs, k.Number), e.limit.Window.Milliseconds()
	l.forget(ms - window)
	if over := int64(l.len()) - e.limit.Requests; over >= 0 {
		return denied(l.times[l.first+int(over)] + window - ms)
	}
	l.add(ms)
	return traffic.Answer{Outcome: traffic.Admitted}
}

// log is the times of requests, the oldest first.
type log struct {
	times []int64
	first int // of those that are not forgotten
}

func (l *log) len() int { return len(l.times) - l.first }

// forget removes those up to a time.
func (l *log) forget(upTo int64) {
	for l.first < len(l.times) && l.times[l.first] <= upTo {
		l.first++
	}
	if l.first > len(l.times)/2 {
		l.times = slices.Delete(l.times, 0, l.first)
		l.first = 0
	}
}

// add adds a time, which must not be before the last one.
func (l *log) add(ms int64) { l.times = append(l.times, ms) }

// after returns how many are later than a time.
func (l *log) after(ms int64) int {
	i, _ := slices.BinarySearch(l.times[l.first:], ms+1)
	return l.len() - i
}
