package admin

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret/username"
)

func showUsage(u ratelimit.Usage, now time.Time) adminapi.Counter {
	d := adminapi.Counter{
		Limit: u.Limit, Known: u.Known, InFlight: u.Unflushed, Estimate: u.Estimate,
		Remaining: u.Remaining, Usage: u.Ratio(),
	}
	if !u.LastSeen.IsZero() {
		d.LastSeen = new(u.LastSeen.UTC())
	}
	d.ClientID, d.Candidate = ratelimit.CandidateOf(u.Key.ClientID)
	address, isSource := u.Key.SourceAddress()
	switch {
	case isSource:
		d.Source = address
	case u.Key.Username == ratelimit.TotalUser:
		d.Total = true
	case u.Key.Username != "":
		d.Username = &u.Key.Username
	}
	if u.FreeIn > 0 {
		d.FreeAt = new(now.Add(u.FreeIn).UTC().Truncate(time.Millisecond))
	}
	return d
}

// showUsages converts counters, and omits counters of candidates that are no longer tried.
func (s *Server) showUsages(us []ratelimit.Usage, now time.Time) []adminapi.Counter {
	out := make([]adminapi.Counter, 0, len(us))
	p := s.o.Policies.Snapshot()
	for _, u := range us {
		d := showUsage(u, now)
		if _, tried := p.Trial(d.ClientID); tried || !d.Candidate {
			out = append(out, d)
		}
	}
	return out
}

// username reads which counters are requested: nil means the client and all its users, and empty
// the client itself. The name may be in any spelling that works for signing in, and a source
// address in any form.
func (s *Server) username(c *call) (*string, error) {
	if _, one := c.query["username"]; !one {
		return nil, nil
	}
	typed := c.query.Get("username")
	if !utf8.ValidString(typed) || strings.ContainsFunc(typed, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return nil, problem.InvalidField("username", "has an unprintable character")
	}
	if address, isSource := (ratelimit.Key{Username: typed}).SourceAddress(); isSource {
		source, err := limiter.ParseSource(address)
		if err != nil {
			return nil, problem.InvalidField("username", "the source %v", err)
		}
		name := ratelimit.Key{}.Source(source).Username
		return &name, nil
	}
	name := username.Stored(typed)
	return &name, nil
}

// showCounters returns the live counters of a client and its users.
func (s *Server) showCounters(c *call) error {
	limit, err := c.number("limit", maxListed, usuallyListed)
	if err != nil {
		return err
	}
	id, err := c.clientID()
	if err != nil {
		return err
	}
	if err := s.registered(c.Request().Context(), id); err != nil {
		return err
	}
	now := s.o.Clock()
	out := adminapi.Counters{ClientID: id, Instance: s.o.Instance(), At: now.UTC(), Counters: []adminapi.Counter{}}
	username, err := s.username(c)
	if err != nil {
		return err
	}
	for _, key := range []string{id, ratelimit.CandidateID(id)} {
		usages, complete := s.usages(c.Request().Context(), key, username, int(limit), now)
		out.Incomplete = out.Incomplete || !complete
		out.Counters = append(out.Counters, s.showUsages(usages, now)...)
	}
	return c.answer(out)
}

// usages returns the counters of a client and its users, or of one username, most used first: those
// in memory, and those that other processes have stored. It reads at most maxListed stored
// counters, in no particular order. complete is false if there are more, or if they could not be
// read.
func (s *Server) usages(ctx context.Context, clientID string, username *string, limit int, now time.Time) (out []ratelimit.Usage, complete bool) {
	if username == nil {
		out = s.o.Counters.ClientUsage(now, clientID, limit)
	} else {
		out = s.o.Counters.Usage(now, ratelimit.Key{ClientID: clientID, Username: *username})
	}
	if s.o.Stored == nil {
		return out[:min(limit, len(out))], true
	}
	stored, err := s.o.Stored.CountersOf(ctx, clientID, username, maxListed+1)
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "read of stored counters failed; showing only this instance's counters", slog.Any("error", err))
		return out[:min(limit, len(out))], false
	}
	complete = len(stored) <= maxListed
	for _, r := range stored[:min(maxListed, len(stored))] {
		key := ratelimit.Key{ClientID: r.ID.ClientID, Username: r.ID.Username}
		if len(s.o.Counters.Usage(now, key)) > 0 { // the counter in memory is newer
			continue
		}
		doc := ratelimit.Document{Frame: r.Frame, Frames: r.Frames}
		if u, ok := ratelimit.StoredUsage(now, r.ID, s.limitsOf(key), &doc); ok {
			out = append(out, u)
		}
	}
	slices.SortStableFunc(out, func(a, b ratelimit.Usage) int { return cmp.Compare(b.Ratio(), a.Ratio()) })
	return out[:min(limit, len(out))], complete
}

// limitsOf returns the limits that count the key.
func (s *Server) limitsOf(key ratelimit.Key) *ratelimit.Limits {
	p := s.o.Policies.Snapshot()
	id, candidate := ratelimit.CandidateOf(key.ClientID)
	if trial, ok := p.Trial(id); ok && candidate {
		return trial.Effective.For(key)
	}
	return p.For(id).For(key)
}

func userOf(c adminapi.Counter) string {
	if c.Username == nil {
		return ""
	}
	return *c.Username
}

func order(b bool) int {
	if b {
		return 1
	}
	return 0
}

// nearest returns the counters nearest their limits. If several instances report the same counter,
// it keeps the one with the highest estimate.
func nearest(all []adminapi.Counter, limit int) []adminapi.Counter {
	same := func(a, b adminapi.Counter) int {
		return cmp.Or(strings.Compare(a.ClientID, b.ClientID), strings.Compare(userOf(a), userOf(b)), strings.Compare(a.Source, b.Source),
			strings.Compare(a.Limit.Name, b.Limit.Name), cmp.Compare(order(a.Candidate), order(b.Candidate)), cmp.Compare(order(a.Total), order(b.Total)))
	}
	slices.SortFunc(all, func(a, b adminapi.Counter) int { return cmp.Or(same(a, b), cmp.Compare(b.Estimate, a.Estimate)) })
	all = slices.CompactFunc(all, func(a, b adminapi.Counter) bool { return same(a, b) == 0 })
	slices.SortStableFunc(all, func(a, b adminapi.Counter) int { return cmp.Compare(b.Usage, a.Usage) })
	return all[:min(limit, len(all))]
}
