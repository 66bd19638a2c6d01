package accesslog

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// shedLinesPerSecond is how many requests that were refused while overloaded have a line, in each second.
const shedLinesPerSecond = 10

// ShedLog writes the lines of requests that were refused while the server is overloaded. There may be thousands a
// second, each of which is refused to save time. So some of each second are written, and of the others only how many
// there were.
type ShedLog struct {
	log *slog.Logger

	mu      sync.Mutex
	logged  int // in the second that began with the first of them
	skipped int
}

// NewShedLog makes a log.
func NewShedLog(log *slog.Logger) *ShedLog { return &ShedLog{log: log} }

// Write writes the line of a request that was refused, or counts it.
func (s *ShedLog) Write(l *Line, r *http.Request) {
	if s.Next(r.Context()) {
		l.Write(s.log, r)
	}
}

// Next reports whether the next request that was refused is to have a line, which the caller writes; otherwise it counts
// the request. What was counted in a second is logged at its end, in the background.
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
	if s.logged == 0 { // the first one begins a second
		time.AfterFunc(time.Second, s.endSecond)
	}
	s.logged++
	return true
}

// endSecond logs how many requests there were if not all of them have a line.
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
