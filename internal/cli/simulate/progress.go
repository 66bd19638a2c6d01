package simulate

import (
	"fmt"
	"strings"
	"time"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/events"
)

// progress is a progress line on a terminal for long work.
type progress struct {
	*command.Env
	reader *events.Reader
	began  time.Time
	next   time.Time // earliest time of the next redraw
	drawn  bool
	what   string
	since  time.Time // of what
}

const (
	progressAfter = time.Second // shorter work has no bar
	progressEvery = 200 * time.Millisecond
	progressWidth = 30
)

func newProgress(c *command.Env, r *events.Reader) *progress {
	now := time.Now()
	return &progress{Env: c, reader: r, began: now, next: now.Add(progressAfter)}
}

// show redraws the line if it is due.
func (p *progress) show(at simulate.Progress) {
	now := time.Now()
	if at.What != p.what {
		p.what, p.since = at.What, now
	}
	if !p.ErrTerminal || now.Before(p.next) {
		return
	}
	p.next, p.drawn = now.Add(progressEvery), true
	done, of := float64(at.Requests), float64(at.Of)
	if at.Of == 0 {
		read, total := p.reader.Progress()
		done, of = float64(read), float64(total)
	}
	rate := float64(at.Requests) / max(now.Sub(p.since).Minutes(), 1e-3)
	_, _ = fmt.Fprintf(p.ErrOut, "\r\x1b[K%s%s: %d requests, %.1f million a minute", barOf(done, of), at.What, at.Requests, rate/1e6)
}

// barOf draws a progress bar; nothing if the total is unknown.
func barOf(done, of float64) string {
	if of <= 0 {
		return ""
	}
	share := min(done/of, 1)
	n := int(share * progressWidth)
	return fmt.Sprintf("[%s%s] %3.0f %% ", strings.Repeat("=", n), strings.Repeat(" ", progressWidth-n), 100*share)
}

// clear removes the line.
func (p *progress) clear() {
	if p.drawn {
		_, _ = fmt.Fprint(p.ErrOut, "\r\x1b[K")
	}
}
