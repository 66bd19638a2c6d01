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

// endsWithin is the time after the end of a temporary change within which all instances try to end
// it. Each instance has its own moment in that time, so of many instances only one or two try.
const endsWithin = 2 * time.Second

// EndChanges ends the temporary changes that are due. One instance appends an entry for each, and
// the others follow. A target with an invalid end stays until the end is valid or the target is
// changed, and holds back no other target. Call it periodically.
func (s *Server) EndChanges(ctx context.Context) error {
	stuck := map[string]error{}
	for {
		ending, due := s.ending(s.o.Policies.Snapshot(), stuck)
		if !due {
			return stuckEnds(stuck)
		}
		if len(ending.Changes) == 0 { // all ends are stuck, so there is nothing to append
			maps.Copy(stuck, ending.Stuck)
			continue
		}
		_, err := s.o.Policies.Change(ctx, func(p *clientcfg.PolicySnapshot) (e clientcfg.Event, err error) {
			if ending, due = s.ending(p, stuck); len(ending.Changes) == 0 { // another instance was faster, or all are stuck
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

// stuckEnds returns an error that names the targets that cannot end when due, with the reasons, or
// nil.
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

// cannotEnd reports whether an error comes from the end itself, not from the store.
func cannotEnd(err error) bool {
	return fielderr.Of(err) != nil || errors.Is(err, clientcfg.ErrUnreadable)
}

// ending returns the ending of the first temporary change that is due at this instance, except for
// some targets.
func (s *Server) ending(p *clientcfg.PolicySnapshot, except map[string]error) (clientcfg.Ending, bool) {
	now := s.o.Clock()
	return p.Ending(func(target string, e *clientcfg.End) bool {
		return except[target] == nil && !now.Before(e.Until.Add(s.moment(e.Change)))
	})
}

// moment returns how long after its end this instance ends a temporary change.
func (s *Server) moment(change int64) time.Duration {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, s.o.Instance(), change) // never fails
	return time.Duration(h.Sum64() % uint64(endsWithin))
}

// endEntry returns the trail entry that ends a temporary change. Its actor is the author of that
// change.
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
	if len(changed) == 0 && err == nil { // all were changed since, so their current values are shown
		changed, err = shown([]clientcfg.Change{{Target: slices.Min(slices.Collect(maps.Keys(ending.Left)))}}, p, p)
	}
	if err != nil || len(changed) == 0 {
		return e, errors.Join(err, errors.New("admin: an end of no known target"))
	}
	e.Target, e.Before, e.After, e.More = changed[0].Target, changed[0].Before, changed[0].After, changed[1:]
	return e, nil
}

// mostNamed bounds the targets that a reason or an error lists.
const mostNamed = 5

// endReason returns the reason text: what ends, and what stays because it was changed since.
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
