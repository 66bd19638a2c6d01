package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clientcfg/lockout"
	"oauth-server/internal/config"
)

// misfits finds clients that do not fit the policies. A change cannot prevent them all: clients are
// registered and deleted while configuration files stay unchanged, and an instance that follows a
// change may have another file.
type misfits struct {
	clients  *clientcfg.Source
	policies *clientcfg.PolicySource
	find     func(*clientcfg.Directory, *clientcfg.PolicySnapshot) []string // returns sorted IDs

	mu       sync.Mutex
	of       *clientcfg.Directory // ids was computed from these clients and policies
	with     *clientcfg.PolicySnapshot
	ids      []string
	reported []string // by the last call of news
}

// list returns the sorted IDs. It computes them again only after a change, because /readyz is
// public.
func (m *misfits) list() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current()
}

func (m *misfits) current() []string {
	if of, with := m.clients.Directory(), m.policies.Snapshot(); of != m.of || with != m.with {
		m.of, m.with, m.ids = of, with, m.find(of, with)
	}
	return m.ids
}

// news returns the IDs that are new since the last call, and those that are gone.
func (m *misfits) news() (begun, ended []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, now := m.reported, m.current()
	m.reported = now
	return without(now, before), without(before, now)
}

// without returns the IDs that are not in the sorted list others.
func without(ids, others []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		_, found := slices.BinarySearch(others, id)
		return found
	})
}

// findMisfits sets up the two kinds: clients that have a policy in the configuration file but are
// not registered, and operators' clients that limits lock out. A gateway's clients are registered
// elsewhere.
func (l *limiting) findMisfits() {
	clients := l.base.clients
	l.unregistered = &misfits{clients: clients, policies: l.policies, find: func(of *clientcfg.Directory, with *clientcfg.PolicySnapshot) []string {
		if l.base.isGateway() {
			return nil
		}
		return with.UnregisteredInFile(of)
	}}
	l.lockedOut = &misfits{clients: clients, policies: l.policies, find: func(of *clientcfg.Directory, with *clientcfg.PolicySnapshot) (ids []string) {
		for c := range of.Operators() {
			if lockout.By(with, c) != nil {
				ids = append(ids, c.ID)
			}
		}
		slices.Sort(ids)
		return ids
	}}
}

// mostMisfitsLogged bounds the warnings of one call.
const mostMisfitsLogged = 20

// noteUnregistered logs the changes since the last call.
func (l *limiting) noteUnregistered(ctx context.Context) error {
	begun, ended := l.unregistered.news()
	for _, id := range begun[:min(len(begun), mostMisfitsLogged)] {
		l.base.log.LogAttrs(ctx, slog.LevelWarn, "configuration has a policy for an unregistered client",
			slog.String("client_id", id), slog.String("field", config.PolicyPath(id)))
	}
	if more := len(begun) - mostMisfitsLogged; more > 0 {
		l.base.log.LogAttrs(ctx, slog.LevelWarn, "configuration has policies for more unregistered clients", slog.Int("not_logged", more))
	}
	registered := l.base.clients.Directory()
	ended = slices.DeleteFunc(ended, func(id string) bool { return !registered.Has(id) }) // the file no longer has a policy for these
	for _, id := range ended {
		l.base.log.LogAttrs(ctx, slog.LevelInfo, "client of a policy in the configuration is now registered", slog.String("client_id", id))
	}
	return nil
}

// noteLockedOut logs the clients that are locked out since the last call.
func (l *limiting) noteLockedOut(ctx context.Context) error {
	l.warnOfLockedOut(ctx, "limits lock out an admin client")
	return nil
}

func (l *limiting) warnOfLockedOut(ctx context.Context, message string) {
	begun, _ := l.lockedOut.news()
	for _, id := range begun[:min(len(begun), mostMisfitsLogged)] {
		c, ok := l.base.clients.Directory().Client(id)
		if !ok {
			continue
		}
		if err := lockout.By(l.policies.Snapshot(), c); err != nil { // nil: mended meanwhile
			l.base.log.LogAttrs(ctx, slog.LevelWarn, message, slog.Any("error", err)) //nolint:sloglint // one of two constants
		}
	}
}
