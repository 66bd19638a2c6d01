package app

import (
	"sync"
	"time"

	"oauth-server/internal/admission"
	"oauth-server/internal/admission/lane"
	"oauth-server/internal/ratelimit"
)

// When an overloaded server is down. While it sheds it is ready: its load would go to other instances, which are hardly
// better off, and be too much for these. It is down when what it answers is next to nothing, for uselessAfter, in which
// a burst has passed. It stays so until that has ended for usefulAfter, in which a balancer that asks every five seconds
// and wants to hear it twice, as in deploy/kubernetes, takes it out. Shorter ones would flap: without requests an
// instance is idle at once.
const (
	uselessAfter = 10 * time.Second
	usefulAfter  = 10 * time.Second
)

// shedding is what /readyz has to know of overload control.
type shedding struct {
	lasted time.Duration         // since it began; 0: nothing is refused
	upTo   ratelimit.Criticality // of which some are refused at the moment
	down   bool                  // there is no use in sending requests here
}

// describe returns the line of /readyz; empty if nothing is refused.
func (s *shedding) describe() string {
	switch {
	case s.down && s.lasted > 0:
		return "refusing nearly all requests, the most critical too; overloaded for " + inSeconds(s.lasted)
	case s.down:
		return "refused nearly all requests, the most critical too, until a moment ago"
	case s.lasted == 0:
		return ""
	case s.upTo == ratelimit.CriticalityUnset:
		return "refusing the least critical requests for " + inSeconds(s.lasted)
	}
	return "refusing the least critical requests for " + inSeconds(s.lasted) + ", up to " + s.upTo.String()
}

// beforeStore returns the line of /readyz about calls that are refused before the store; empty if none is. Most of what
// needs no store is answered, and the most critical calls come first, so the instance stays ready.
func beforeStore(st *lane.Stats) string {
	if st.Mode != ratelimit.Enforce || st.Refusing == 0 || st.UpTo == ratelimit.CriticalityUnset {
		return ""
	}
	return "refusing requests that wait too long for the store for " + inSeconds(st.Refusing) + ", up to " + st.UpTo.String()
}

// shedWatch judges the state of the gate whenever it is asked, and so as often as a balancer asks.
type shedWatch struct {
	stats func() admission.Stats

	mu      sync.Mutex
	down    bool
	useless time.Time // when that was last seen
}

func (w *shedWatch) look(now time.Time) shedding {
	st := w.stats()
	w.mu.Lock()
	defer w.mu.Unlock()
	if st.Mode != ratelimit.Enforce { // then nothing is refused
		w.down = false
		return shedding{}
	}
	if st.Useless > 0 {
		w.useless = now
	}
	switch {
	case st.Useless >= uselessAfter:
		w.down = true
	case now.Sub(w.useless) >= usefulAfter:
		w.down = false
	}
	return shedding{lasted: st.Overloaded, upTo: st.UpTo, down: w.down}
}
