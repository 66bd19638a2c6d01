package admin

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/fielderr"
	"oauth-server/internal/secret"
)

// endsWithin is how long after the end of a temporary change its last instance tries to end it. Each has a
// moment of its own in that time, so that of many instances only one or two do.
const endsWithin = 2 * time.Second

// EndChanges ends the temporary changes that are due: each by an entry of the trail, which one instance
// appends, and the others follow. One whose end would not be valid stays until it can end, or until its
// targets are changed. The caller repeats it.
func (s *Server) EndChanges(ctx context.Context) error {
	var errs []error
	invalid := map[int64]bool{}
	for {
		ending, due := s.ending(s.o.Policies.Snapshot(), invalid)
		if !due {
			return errors.Join(errs...)
		}
		_, err := s.o.Policies.Change(ctx, func(p *clientcfg.PolicySnapshot) (e clientcfg.PolicyEntry, err error) {
			if ending, due = s.ending(p, invalid); !due { // another instance was faster
				return e, errNothing
			}
			return s.endEntry(&ending, p)
		})
		switch {
		case err == nil:
			s.log.LogAttrs(ctx, slog.LevelInfo, "temporary change ended", slog.Int64("change", ending.Change), slog.Int("left", len(ending.Left)))
		case cannotEnd(err):
			invalid[ending.Change] = true
			errs = append(errs, fmt.Errorf("admin: end change %d: %w", ending.Change, err))
		case !errors.Is(err, errNothing):
			return fmt.Errorf("admin: end a temporary change: %w", err)
		}
	}
}

// cannotEnd reports whether an error is of the end itself, and not of the store or of all policies.
func cannotEnd(err error) bool {
	var refused *clientcfg.RefusedError
	return fielderr.Of(err) != nil || errors.Is(err, clientcfg.ErrUnreadable) && !errors.As(err, &refused)
}

// ending returns how the first temporary change ends of those that are due here, except for some.
func (s *Server) ending(p *clientcfg.PolicySnapshot, except map[int64]bool) (clientcfg.Ending, bool) {
	now := s.o.Clock()
	return p.Ending(func(e *clientcfg.End) bool {
		return !except[e.Change] && !now.Before(e.Until.Add(s.moment(e.Change)))
	})
}

// moment is when this instance ends a temporary change, after that is due.
func (s *Server) moment(change int64) time.Duration {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, s.o.Instance(), change) // never fails
	return time.Duration(h.Sum64() % uint64(endsWithin))
}

// endEntry is the entry by which a temporary change ends. It is by who made that.
func (s *Server) endEntry(ending *clientcfg.Ending, p *clientcfg.PolicySnapshot) (clientcfg.PolicyEntry, error) {
	now := s.o.Now().UTC().Truncate(time.Millisecond)
	e := clientcfg.PolicyEntry{Changes: ending.Changes, AuditEntry: clientcfg.AuditEntry{
		Version: p.Version() + 1, ID: secret.ID(), At: now, Actor: ending.Actor, Action: actionEnd,
		Reason: endReason(ending), Instance: s.o.Instance(),
	}}
	after, err := p.Apply(&e)
	if err != nil {
		return e, err
	}
	changed, err := shown(ending.Changes, p, after)
	if len(changed) == 0 && err == nil { // all were changed since: what they are now is shown
		changed, err = shown([]clientcfg.Change{{Target: slices.Min(slices.Collect(maps.Keys(ending.Left)))}}, p, p)
	}
	if err != nil || len(changed) == 0 {
		return e, errors.Join(err, errors.New("admin: an end of no known target"))
	}
	e.Target, e.Before, e.After, e.More = changed[0].Target, changed[0].Before, changed[0].After, changed[1:]
	return e, nil
}

// mostLeft bounds the targets that a reason names.
const mostLeft = 5

// endReason says what ends, and what was changed since and therefore stays as it is.
func endReason(ending *clientcfg.Ending) string {
	var left []string
	for _, target := range slices.Sorted(maps.Keys(ending.Left)) {
		if len(left) == mostLeft {
			left = append(left, fmt.Sprintf("and %d more", len(ending.Left)-mostLeft))
			break
		}
		left = append(left, fmt.Sprintf("%s since change %d", target, ending.Left[target]))
	}
	reason := fmt.Sprintf("change %d", ending.Change)
	if len(left) > 0 {
		reason += "; left as it is: " + strings.Join(left, ", ")
	}
	return reason
}
