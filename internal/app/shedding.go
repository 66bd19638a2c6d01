package app

import (
	"sync"
	"time"

	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
)

// These durations say when an overloaded server is down. A server that sheds is still ready:
// otherwise its load would go to other instances, which are probably as loaded and would be
// overwhelmed. The server is down after it has refused nearly everything for uselessAfter, which is
// longer than a burst. It is ready again when that has ended for usefulAfter. In that time, a
// balancer that probes every five seconds and needs two failures, as in deploy/kubernetes, takes it
// out. With shorter times the state would flap, because an instance without requests is idle at
// once.
const (
	uselessAfter = 10 * time.Second
	usefulAfter  = 10 * time.Second
)

// shedding is the state of overload control for /readyz.
type shedding struct {
	lasted time.Duration         // since it began; 0: nothing is refused
	upTo   ratelimit.Criticality // the highest criticality that is partly refused
	down   bool                  // sending requests here is useless
}

// describe returns the line for /readyz, or an empty string if nothing is refused.
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

// beforeStore returns the line for /readyz about calls that are refused before the store, or an
// empty string. The instance stays ready, because it answers most requests that need no store, and
// serves the most critical calls first.
func beforeStore(st *storequeue.Stats) string {
	if st.Mode != ratelimit.Enforce || st.Refusing == 0 || st.UpTo == ratelimit.CriticalityUnset {
		return ""
	}
	return "refusing requests that wait too long for the store for " + inSeconds(st.Refusing) + ", up to " + st.UpTo.String()
}

// shedWatch evaluates the state of the shedder at each call, so as often as a balancer asks.
type shedWatch struct {
	stats func() overload.Stats

	mu      sync.Mutex
	down    bool
	useless time.Time // when refusing was last useless
}

func (w *shedWatch) look(now time.Time) shedding {
	st := w.stats()
	w.mu.Lock()
	defer w.mu.Unlock()
	if st.Mode != ratelimit.Enforce { // nothing is refused in other modes
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
