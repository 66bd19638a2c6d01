package bans

import (
	"strconv"
	"time"

	"oauth-server/internal/ratelimit"
)

// scope is where a ban is kept and its denials are counted. Dry-run and each candidate have
// separate scopes.
type scope struct {
	table *table
	kind  string // of counters
	since string // identifies the candidate; empty if it is not a candidate
}

func (b *Bans) scopeOf(m ratelimit.Mode) scope {
	if m == ratelimit.DryRun {
		return scope{table: &b.dryRun, kind: "denials in dry-run "}
	}
	return scope{table: &b.enforced, kind: "denials "}
}

// triedSince returns the scope of the candidates tried since t. Keys contain the client, so
// candidates of different clients do not mix.
func (b *Bans) triedSince(t time.Time) scope {
	return scope{table: &b.tried, kind: "denials of a candidate ", since: strconv.FormatInt(t.UnixMilli(), 36) + " "}
}

// name returns the name of a ban in the table.
func (s scope) name(k ratelimit.Key) string { return s.since + name(k) }

// get returns the ban of a key, or a zero Ban.
func (s scope) get(k ratelimit.Key) Ban {
	m := s.table.load()
	if m.Len() == 0 {
		return Ban{}
	}
	b, _ := m.Get(s.name(k))
	return b
}

// countKey returns the key that counts the denied requests of k since its last ban. Each ban starts
// a new count, on all instances, even before the ban is stored.
func (s scope) countKey(k ratelimit.Key, last time.Time) ratelimit.Key {
	return ratelimit.Key{
		ClientID: ratelimit.Internal + s.kind + s.since + strconv.FormatInt(last.UnixMilli(), 36) + " " + k.ClientID, Username: k.Username,
	}
}

// Tried reports whether a key would be banned under the candidate tried since a time. As in
// dry-run, only this instance knows the ban, but all instances count the denied requests together.
func (b *Bans) Tried(now time.Time, k ratelimit.Key, e *ratelimit.Effective, since time.Time) bool {
	if e.Bans() == nil {
		return false
	}
	ban := b.triedSince(since).get(k.Bounded())
	return ban.Active(now)
}

// TriedDenied counts a request that a candidate would have denied. The candidate must not have
// banned the key.
func (b *Bans) TriedDenied(now time.Time, k ratelimit.Key, e *ratelimit.Effective, since time.Time) {
	b.denied(now, k, e, b.triedSince(since))
}
