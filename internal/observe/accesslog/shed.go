package accesslog

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// shedLinesPerSecond is the maximum number of shed requests logged per second.
const shedLinesPerSecond = 10

// ShedLog logs requests shed because of overload. There may be thousands per second, and shedding
// must stay cheap. It logs the first few of each second and counts the rest.
type ShedLog struct {
	log *slog.Logger

	mu      sync.Mutex
	logged  int // since the first one of this second
	skipped int
}

// NewShedLog makes a log.
func NewShedLog(log *slog.Logger) *ShedLog { return &ShedLog{log: log} }

// Write logs a shed request, or counts it.
func (s *ShedLog) Write(l *Line, r *http.Request) {
	if s.Next(r.Context()) {
		l.Write(s.log, r)
	}
}

// Next reports whether the caller should log the next shed request; otherwise it counts the
// request. The count of a second is logged in the background when the second ends.
func (s *ShedLog) Next(ctx context.Context) bool {
	if !s.log.Enabled(ctx, slog.LevelInfo) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logged == shedLinesPerSecond {
		s.skipped++
		return false
	}
	if s.logged == 0 { // the first one starts a second
		time.AfterFunc(time.Second, s.endSecond)
	}
	s.logged++
	return true
}

// endSecond logs the number of requests if some were not logged.
func (s *ShedLog) endSecond() {
	s.mu.Lock()
	logged, skipped := s.logged, s.skipped
	s.logged, s.skipped = 0, 0
	s.mu.Unlock()
	if skipped > 0 {
		s.log.LogAttrs(context.Background(), slog.LevelInfo, "requests refused while overloaded",
			slog.Int("count", logged+skipped), slog.Int("skipped", skipped))
	}
}
