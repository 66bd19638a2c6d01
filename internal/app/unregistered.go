package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
)

// unregistered finds the clients that the configuration file has a policy for and that are not registered.
// The server serves all the same: clients are registered and deleted while files stay as they are.
type unregistered struct {
	clients  *clientcfg.Source
	policies *clientcfg.PolicySource
	log      *slog.Logger
	gateway  bool // its clients are registered elsewhere: there are none to find

	mu       sync.Mutex
	of       *clientcfg.Directory // and of the policies below, for which ids was made
	with     *clientcfg.PolicySnapshot
	ids      []string
	reported []string // by note
}

// list returns them, ordered. It compares again only if either has changed, because /readyz is open to the
// public.
func (u *unregistered) list() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.current()
}

func (u *unregistered) current() []string {
	if u.gateway {
		return nil
	}
	if of, with := u.clients.Directory(), u.policies.Snapshot(); of != u.of || with != u.with {
		u.of, u.with, u.ids = of, with, with.UnregisteredInFile(of)
	}
	return u.ids
}

// mostUnregisteredLogged bounds the lines of one call of note.
const mostUnregisteredLogged = 20

// note logs what has changed since the last call.
func (u *unregistered) note(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, now := u.reported, u.current()
	u.reported = now
	lines := 0
	for _, id := range now {
		if _, known := slices.BinarySearch(before, id); known {
			continue
		}
		if lines++; lines <= mostUnregisteredLogged {
			u.log.LogAttrs(ctx, slog.LevelWarn, "configuration has a policy for a client that is not registered; it applies when there is one",
				slog.String("client_id", id), slog.String("field", config.PolicyPath(id)))
		}
	}
	if lines > mostUnregisteredLogged {
		u.log.LogAttrs(ctx, slog.LevelWarn, "configuration has policies for more clients that are not registered", slog.Int("not_logged", lines-mostUnregisteredLogged))
	}
	for _, id := range before {
		if _, still := slices.BinarySearch(now, id); !still {
			u.log.LogAttrs(ctx, slog.LevelInfo, "client of a policy in the configuration is registered now", slog.String("client_id", id))
		}
	}
	return nil
}
