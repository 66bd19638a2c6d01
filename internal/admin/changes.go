package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/precondition"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/admin/targets"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// Limits on a change of several targets.
const (
	maxChanges     = 10_000
	maxChangesBody = 4 << 20 // bytes
)

// listChanges returns all operator settings. With a limit it returns a page, and pages with equal
// ETags show the same state.
func (s *Server) listChanges(c *call) error {
	limit, err := c.number("limit", maxChanges, 0)
	if err != nil {
		return err
	}
	p := s.policies(c)
	return c.answerState(http.StatusOK, stateIn(p, targets.Target{}), func() (any, error) {
		return showSet(p, c.query.Get("after"), int(limit)), nil
	})
}

// showSet returns at most limit targets after one, in the order of a file of limits. A limit of 0
// means all.
func showSet(p *clientcfg.PolicySnapshot, after string, limit int) adminapi.Set {
	out := adminapi.Set{Version: p.Version(), Targets: []adminapi.SetTarget{}}
	most := math.MaxInt / 2
	if limit > 0 {
		most = limit + 1 // one more shows whether there is another page
	}
	names := lowest(most, adminapi.CompareTargets, func(yield func(string) bool) {
		for name := range targets.All(p) {
			if adminapi.CompareTargets(name, after) > 0 && !yield(name) {
				return
			}
		}
	})
	if limit > 0 && len(names) > limit {
		names = names[:limit]
		out.Next = names[limit-1]
	}
	lasting := p.Lasting()
	for _, name := range names {
		t, known := targets.Parse(name)
		if !known {
			continue
		}
		shown := adminapi.SetTarget{Target: name, Value: t.Value(p)}
		if end := targets.Until(p, name); !end.IsZero() {
			shown.Until, shown.ReturnsTo = end, t.Value(lasting)
		}
		out.Targets = append(out.Targets, shown)
	}
	return out
}

// targetChange is one of the requested changes.
type targetChange struct {
	field string // of the change, for errors
	to    targets.Target
	value *strict.Value // nil to remove it
}

// makeChanges changes several targets in one trail entry.
func (s *Server) makeChanges(c *call) error {
	v, err := c.bodyOf(maxChangesBody, "application/json")
	if err != nil {
		return err
	}
	asked, lasts, err := s.readChanges(c.Request().Context(), v)
	if err != nil {
		return err
	}
	ch := &change{
		action: actionUpdate, lasts: lasts,
		derive: func(p *clientcfg.PolicySnapshot, now time.Time) ([]clientcfg.Change, error) {
			return altered(p, asked, now)
		},
	}
	only, err := c.asked(ch)
	if err != nil {
		return err
	}
	return s.performMany(c, ch, only)
}

// changeOfTarget is one of the changes in a request body.
type changeOfTarget struct {
	Target string        `json:"target"`
	Value  *strict.Value `json:"value"`
}

// readChanges reads the targets to change and for how long. 0 means permanently.
func (s *Server) readChanges(ctx context.Context, v *strict.Value) (asked []targetChange, lasts time.Duration, err error) {
	var in struct {
		Changes []changeOfTarget `json:"changes"`
		For     *string          `json:"for"`
	}
	errs := v.Decode(&in, nil)
	if len(in.Changes) == 0 && len(errs) == 0 {
		errs.Add("changes", "needs at least one")
	}
	if len(in.Changes) > maxChanges {
		errs.Add("changes", "%d changes exceed the maximum of %d; split them", len(in.Changes), maxChanges)
	}
	if len(errs) > 0 {
		return nil, 0, errs.Err()
	}
	first, added := map[string]int{}, map[string]targets.Target{}
	for i, change := range in.Changes {
		field := fielderr.Item("changes", i)
		to, known, err := targets.ParseTyped(change.Target)
		if wrong := fielderr.Of(err); wrong != nil {
			errs = append(errs, wrong.Under(field+".target")...)
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		target := change.Target
		if known {
			target = to.Name()
		}
		at, twice := first[target]
		switch {
		case !known:
			errs.Add(field+".target", "%q is not settings, tiers/NAME, policies/CLIENT, overrides/CLIENT USERNAME or candidates/CLIENT", change.Target)
			continue
		case twice:
			errs.Add(field+".target", "%s is a duplicate of %s", change.Target, fielderr.Item("changes", at))
		case change.Value == nil:
			errs.Add(field+".value", "is missing; use null to remove the target")
		case change.Value.IsNull():
			change.Value = nil
		default:
			added[field+".target"] = to
		}
		first[target] = i
		asked = append(asked, targetChange{field, to, change.Value})
	}
	if in.For != nil {
		if lasts, err = readFor(*in.For); err != nil {
			errs.Add("for", "%v", err)
		}
	}
	unknown, err := s.areRegistered(ctx, added)
	if err == nil {
		err = append(errs, unknown...).Err()
	}
	return asked, lasts, err
}

// altered returns the changes that give the targets the requested values, without those that have
// no effect.
func altered(p *clientcfg.PolicySnapshot, asked []targetChange, now time.Time) (made []clientcfg.Change, err error) {
	var errs fielderr.Errors
	for _, a := range asked {
		change, err := a.to.With(p, a.value, now)
		fields := fielderr.Of(err)
		if err != nil && fields == nil {
			return nil, err
		}
		if errs = append(errs, fields.Under(a.field+".value")...); err != nil {
			continue
		}
		if p.Alters(&change) {
			made = append(made, change)
		}
	}
	return made, errs.Err()
}

// Limits on the duration of a temporary change.
const (
	shortest = time.Minute
	longest  = 30 * 24 * time.Hour
)

// readFor reads the duration of a temporary change: 90m, 2h, 7d.
func readFor(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, is := strings.CutSuffix(text, "d"); is {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d < shortest || d > longest {
		return 0, fmt.Errorf("must be from 1m to 30d, such as 90m, 2h or 7d, not %q", text)
	}
	return d, nil
}

// errNothing cancels a change without effect.
var errNothing = errors.New("admin: nothing to change")

// performMany changes several targets and returns the changes made, or only the changes that it
// would make.
func (s *Server) performMany(c *call, ch *change, only bool) error {
	after, err := s.make(c, ch, only)
	if errors.Is(err, errNothing) {
		after, ch.until, err = ch.before, time.Time{}, nil
	}
	if err != nil {
		return err
	}
	out := adminapi.Changed{Version: after.Version(), Until: ch.until}
	changed := targets.Changes(ch.made, ch.before, after)
	out.Changes = make([]adminapi.ChangedTarget, len(changed))
	for i, c := range changed {
		out.Changes[i] = adminapi.ChangedTarget{Change: c, Until: targets.Until(after, c.Target), WasUntil: targets.Until(ch.before, c.Target)}
	}
	if only {
		out.Version = ch.before.Version()
		effect := s.effect(c.Request().Context(), ch, after)
		out.Effect = &effect
		return c.answer(out)
	}
	return c.answerState(http.StatusOK, stateIn(after, targets.Target{}), func() (any, error) { return out, nil })
}

// undo gives the targets of an earlier change their previous values, unless one of them has another
// value by now. It is a normal change, which can be undone too.
func (s *Server) undo(c *call) error {
	version, err := strconv.ParseInt(c.Param("version"), 10, 64)
	if err != nil || version < 1 {
		return problem.NotFound("the version of a change is a number from 1")
	}
	ch := &change{action: actionUndo, reason: fmt.Sprintf("change %d", version)}
	if c.query.Get("reason") != "" {
		ch.reason += ": "
	}
	only, err := c.asked(ch)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	entry, err := s.undoable(ctx, version)
	if err != nil {
		return err
	}
	ch.derive = func(p *clientcfg.PolicySnapshot, _ time.Time) ([]clientcfg.Change, error) {
		changes, since, err := entry.Undo(p, s.o.Clock())
		if err == nil && len(since) > 0 {
			err = s.changedSince(ctx, since[0], version)
		}
		return changes, err
	}
	return s.performMany(c, ch, only)
}

// undoable returns the entry of a change of limits.
func (s *Server) undoable(ctx context.Context, version int64) (*clientcfg.Event, error) {
	events, err := s.o.Events.Events(ctx, clientcfg.EventQuery{Since: version, Before: version + 1, Limits: true})
	switch {
	case err != nil:
		return nil, err
	case len(events) == 0:
		return nil, problem.NotFound("the audit trail has no change %d of limits", version)
	case events[0].Err != nil:
		return nil, problem.Conflict("change %d cannot be undone because it is unreadable: %v", version, events[0].Err)
	}
	for i := range events[0].Changes {
		if !events[0].Changes[i].IsState() {
			return nil, problem.Conflict("a reset of counters cannot be undone")
		}
	}
	return &events[0], nil
}

// changedSince returns the error for a change to be undone that is not the last one of a target.
func (s *Server) changedSince(ctx context.Context, target string, version int64) error {
	last, err := s.changesSince(ctx, target, precondition.Unknown)
	if err != nil {
		return err
	}
	changed := problem.New(http.StatusConflict, problem.TypeConflict, "Changed since", "change %d is not the latest of %s", version, target)
	if len(last) > 0 {
		e := &last[0]
		changed.Detail += fmt.Sprintf(": change %[3]d (%[2]s by %[1]s at %[4]s) came later; undo that first, or set the values directly",
			adminapi.Who(&e.Actor), e.Action, e.Version, e.At.UTC().Format(time.RFC3339))
	}
	return changed
}

// areRegistered returns, as field errors, which targets belong to clients that do not exist. It
// accepts a target that is already set.
func (s *Server) areRegistered(ctx context.Context, asked map[string]targets.Target) (errs fielderr.Errors, err error) {
	p, ids := s.o.Policies.Snapshot(), map[string]string{} // by field
	for field, t := range asked {
		if id := t.Client(); id != "" && !t.IsSet(p) {
			ids[field] = id
		}
	}
	unknown, err := s.unregistered(ctx, slices.Sorted(maps.Values(ids)))
	for _, field := range slices.Sorted(maps.Keys(ids)) {
		if _, is := slices.BinarySearch(unknown, ids[field]); is {
			errs.Add(field, "client %q does not exist", ids[field])
		}
	}
	return errs, err
}
