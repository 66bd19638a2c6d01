package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
)

// unregistered finds clients that have a policy in the configuration file but are not registered.
// The server still serves, because clients are registered and deleted while files stay unchanged.
type unregistered struct {
	clients  *clientcfg.Source
	policies *clientcfg.PolicySource
	log      *slog.Logger
	gateway  bool // its clients are registered elsewhere, so the list is empty

	mu       sync.Mutex
	of       *clientcfg.Directory // ids was computed from these clients and policies
	with     *clientcfg.PolicySnapshot
	ids      []string
	reported []string // by the last call of note
}

// list returns the sorted IDs. It computes them again only after a change, because /readyz is
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

// note logs the changes since the last call.
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
