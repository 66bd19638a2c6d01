package app

import (
	"context"
	"log/slog"
	"sync"

	"oauth-server/internal/clientcfg"
)

// lockOuts finds operators' clients that limits lock out. An instance never makes a change that
// locks one out, as far as it knows. But an instance that follows the change may have another
// configuration file, and a client may become an operator's when such limits already exist.
type lockOuts struct {
	clients  *clientcfg.Source
	policies *clientcfg.PolicySource
	log      *slog.Logger

	mu       sync.Mutex
	of       *clientcfg.Directory // at the last call of note
	with     *clientcfg.PolicySnapshot
	reported map[string]bool // by client
}

// mostLockedOutLogged bounds the lines of one call of note.
const mostLockedOutLogged = 20

// note logs the clients that became locked out since the last call. It checks the operators'
// clients only after a change of clients or policies.
func (l *lockOuts) note(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	of, with := l.clients.Directory(), l.policies.Snapshot()
	if of == l.of && with == l.with {
		return nil
	}
	reported, lines := map[string]bool{}, 0
	for c := range of.Operators() {
		err := with.LocksOut(c)
		if err == nil {
			continue
		}
		if reported[c.ID] = true; l.reported[c.ID] {
			continue
		}
		switch lines++; {
		case lines > mostLockedOutLogged:
		case l.of == nil:
			l.log.LogAttrs(ctx, slog.LevelWarn, "started with limits that lock out an operator's client", slog.Any("error", err))
		default:
			l.log.LogAttrs(ctx, slog.LevelWarn, "limits that lock out an operator's client", slog.Any("error", err))
		}
	}
	l.of, l.with, l.reported = of, with, reported
	return nil
}
