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
)

// endsWithin is how long after the end of a temporary change its last instance tries to end it. Each has a
// moment of its own in that time, so that of many instances only one or two do.
const endsWithin = 2 * time.Second

// EndChanges ends the temporary changes that are due: each by an entry of the trail, which one instance
// appends, and the others follow. A target whose end would not be valid stays until that is, or until it is
// changed, and holds back no other. The caller repeats it.
func (s *Server) EndChanges(ctx context.Context) error {
	stuck := map[string]error{}
	for {
		ending, due := s.ending(s.o.Policies.Snapshot(), stuck)
		if !due {
			return stuckEnds(stuck)
		}
		if len(ending.Changes) == 0 { // all is stuck: nothing to append
			maps.Copy(stuck, ending.Stuck)
			continue
		}
		_, err := s.o.Policies.Change(ctx, func(p *clientcfg.PolicySnapshot) (e clientcfg.Event, err error) {
			if ending, due = s.ending(p, stuck); len(ending.Changes) == 0 { // another instance was faster, or all is stuck
				return e, errNothing
			}
			return s.endEntry(&ending, p)
		})
		switch {
		case err == nil:
			s.log.LogAttrs(ctx, slog.LevelInfo, "temporary change ended", slog.Int64("change", ending.Change),
				slog.Int("left", len(ending.Left)), slog.Int("stuck", len(ending.Stuck)))
		case cannotEnd(err):
			for i := range ending.Changes {
				if of, is := strings.CutPrefix(ending.Changes[i].Target, clientcfg.EndTarget("")); is {
					stuck[of] = err
				}
			}
		case !errors.Is(err, errNothing):
			return fmt.Errorf("admin: end a temporary change: %w", err)
		}
		maps.Copy(stuck, ending.Stuck)
	}
}

// stuckEnds says which targets do not end although that is due, and why; nil if there are none.
func stuckEnds(stuck map[string]error) error {
	var errs []error
	for _, target := range slices.Sorted(maps.Keys(stuck)) {
		if len(errs) == mostNamed {
			errs = append(errs, fmt.Errorf("and %d more", len(stuck)-mostNamed))
			break
		}
		errs = append(errs, fmt.Errorf("admin: end %s: %w", target, stuck[target]))
	}
	return errors.Join(errs...)
}

// cannotEnd reports whether an error is of the end itself, and not of the store.
func cannotEnd(err error) bool {
	return fielderr.Of(err) != nil || errors.Is(err, clientcfg.ErrUnreadable)
}

// ending returns how the first temporary change ends of those that are due here, except for some targets.
func (s *Server) ending(p *clientcfg.PolicySnapshot, except map[string]error) (clientcfg.Ending, bool) {
	now := s.o.Clock()
	return p.Ending(func(target string, e *clientcfg.End) bool {
		return except[target] == nil && !now.Before(e.Until.Add(s.moment(e.Change)))
	})
}

// moment is when this instance ends a temporary change, after that is due.
func (s *Server) moment(change int64) time.Duration {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, s.o.Instance(), change) // never fails
	return time.Duration(h.Sum64() % uint64(endsWithin))
}

// endEntry is the entry by which a temporary change ends. It is by who made that.
func (s *Server) endEntry(ending *clientcfg.Ending, p *clientcfg.PolicySnapshot) (clientcfg.Event, error) {
	now := s.o.Now().UTC().Truncate(time.Millisecond)
	e := clientcfg.Event{
		At: now, Actor: ending.Actor, Action: actionEnd, Reason: endReason(ending), Instance: s.o.Instance(), Changes: ending.Changes,
	}
	if err := p.Complete(&e); err != nil {
		return e, err
	}
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

// mostNamed bounds the targets that a reason or an error names.
const mostNamed = 5

// endReason says what ends, and what was changed since and therefore stays as it is.
func endReason(ending *clientcfg.Ending) string {
	var left []string
	for _, target := range slices.Sorted(maps.Keys(ending.Left)) {
		if len(left) == mostNamed {
			left = append(left, fmt.Sprintf("and %d more", len(ending.Left)-mostNamed))
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
