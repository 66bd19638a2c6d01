package app

import (
	"sync"
	"time"

	"oauth-server/internal/syncer"
)

// statsAge is how old the figures of the syncer may be that are shown.
const statsAge = 100 * time.Millisecond

// syncStats are the figures of the syncer. To gather them takes a look at every
// counter that waits for an exchange, and /readyz is open to the public, so they
// are gathered once in [statsAge] at most.
type syncStats struct {
	read func() syncer.Stats

	mu   sync.Mutex
	at   time.Time
	last syncer.Stats
}

func (s *syncStats) get() syncer.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || time.Since(s.at) >= statsAge {
		s.last, s.at = s.read(), time.Now()
	}
	return s.last
}
