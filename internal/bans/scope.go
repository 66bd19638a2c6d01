package bans

import (
	"strconv"
	"time"

	"oauth-server/internal/ratelimit"
)

// scope is where a ban is kept, and its denials are counted: apart in dry-run, and for each candidate.
type scope struct {
	table *table
	kind  string // of counters
	since string // identifies the candidate; empty for what is not tried
}

func (b *Bans) scopeOf(m ratelimit.Mode) scope {
	if m == ratelimit.DryRun {
		return scope{table: &b.dryRun, kind: "denials in dry-run "}
	}
	return scope{table: &b.enforced, kind: "denials "}
}

// triedSince is the scope of candidates that are tried since that time. Their keys tell the clients apart.
func (b *Bans) triedSince(t time.Time) scope {
	return scope{table: &b.tried, kind: "denials of a candidate ", since: strconv.FormatInt(t.UnixMilli(), 36) + " "}
}

// name is that of the ban of a key in the table.
func (s scope) name(k ratelimit.Key) string { return s.since + name(k) }

// get returns the ban of a key; zero if there is none.
func (s scope) get(k ratelimit.Key) Ban {
	m := s.table.load()
	if m.Len() == 0 {
		return Ban{}
	}
	b, _ := m.Get(s.name(k))
	return b
}

// countKey is what the denied requests of a key count under since its last ban: after each one they are
// counted anew, on all instances, also while the ban is not stored yet.
func (s scope) countKey(k ratelimit.Key, last time.Time) ratelimit.Key {
	return ratelimit.Key{
		ClientID: ratelimit.Internal + s.kind + s.since + strconv.FormatInt(last.UnixMilli(), 36) + " " + k.ClientID, Username: k.Username,
	}
}

// Tried reports whether a key would be banned under a candidate that is tried since that time. As in dry-run, that is
// known on this instance alone, while the requests denied are counted on all.
func (b *Bans) Tried(now time.Time, k ratelimit.Key, e *ratelimit.Effective, since time.Time) bool {
	if e.Bans() == nil {
		return false
	}
	ban := b.triedSince(since).get(k.Bounded())
	return ban.Active(now)
}

// TriedDenied counts a request that a candidate would have denied, of a key that it would not have banned.
func (b *Bans) TriedDenied(now time.Time, k ratelimit.Key, e *ratelimit.Effective, since time.Time) {
	b.denied(now, k, e, b.triedSince(since))
}
