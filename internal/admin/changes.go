package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// Limits on a change of several targets.
const (
	maxChanges     = 10_000
	maxChangesBody = 4 << 20 // bytes
)

// wholeSet is all operator settings as one resource, with the version of all policies. Only its
// parts can be changed. It is shown in pages of limit targets after one target; a limit of 0 shows
// all.
type wholeSet struct {
	after string
	limit int
}

func (wholeSet) target() string { return "" }

func (wholeSet) state(p *clientcfg.PolicySnapshot) state {
	// The number of temporary values changes at their ends, which do not change the version.
	return state{doc: p.Set().Temporary.Len(), exists: true, version: p.Version()}
}

func (wholeSet) base(*clientcfg.PolicySnapshot) any { return nil }

func (wholeSet) with(*clientcfg.PolicySnapshot, *strict.Value, time.Time) ([]clientcfg.Change, error) {
	return nil, nil
}

func (w wholeSet) view(_ context.Context, _ *Server, p *clientcfg.PolicySnapshot) any {
	out := adminapi.Set{Version: p.Version(), Targets: []adminapi.SetTarget{}}
	lasting := p.Lasting()
	most := 0
	if w.limit > 0 {
		most = w.limit + 1 // one more shows whether there is another page
	}
	for i, target := range setTargets(p, w.after, most) {
		if w.limit > 0 && i == w.limit {
			out.Next = out.Targets[i-1].Target
			break
		}
		r, known := resourceOf(target)
		if !known {
			continue
		}
		t := adminapi.SetTarget{Target: target, Value: setValue(r, p)}
		if end := until(p, target); !end.IsZero() {
			t.Until, t.ReturnsTo = end, setValue(r, lasting)
		}
		out.Targets = append(out.Targets, t)
	}
	return out
}

// setValue returns a resource's setting in the form that a change accepts.
func setValue(r resource, p *clientcfg.PolicySnapshot) json.RawMessage {
	if isUnset(r, p) {
		return json.RawMessage("null")
	}
	b, err := json.Marshal(r.base(p))
	if err != nil { // it was decoded from JSON
		panic(fmt.Sprintf("admin: %s does not encode: %v", r.target(), err))
	}
	return b
}

// listChanges returns all operator settings. With a limit it returns a page, and pages with equal
// ETags show the same state.
func (s *Server) listChanges(c *call) error {
	limit, err := c.number("limit", maxChanges, 0)
	if err != nil {
		return err
	}
	return s.get(c, wholeSet{c.query.Get("after"), int(limit)})
}

// targetChange is one of the requested changes.
type targetChange struct {
	field string // of the change, for errors
	to    resource
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
		resource: wholeSet{}, action: actionUpdate, lasts: lasts,
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
		errs.Add("changes", "at least one is needed")
	}
	if len(in.Changes) > maxChanges {
		errs.Add("changes", "%d changes are more than %d; divide them", len(in.Changes), maxChanges)
	}
	if len(errs) > 0 {
		return nil, 0, errs.Err()
	}
	first, added := map[string]int{}, map[string]resource{}
	for i, change := range in.Changes {
		field := fielderr.Item("changes", i)
		r, known, err := resourceTyped(change.Target)
		if wrong := fielderr.Of(err); wrong != nil {
			errs = append(errs, wrong.Under(field+".target")...)
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		target := change.Target
		if known {
			target = r.target()
		}
		at, twice := first[target]
		switch {
		case !known:
			errs.Add(field+".target", "%q is not settings, tiers/NAME, policies/CLIENT, overrides/CLIENT USERNAME or candidates/CLIENT", change.Target)
			continue
		case twice:
			errs.Add(field+".target", "%s is in %s already", change.Target, fielderr.Item("changes", at))
		case change.Value == nil:
			errs.Add(field+".value", "is missing; null removes what is set")
		case change.Value.IsNull():
			change.Value = nil
		default:
			added[field+".target"] = r
		}
		first[target] = i
		asked = append(asked, targetChange{field, r, change.Value})
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
		changes, err := a.to.with(p, a.value, now)
		fields := fielderr.Of(err)
		if err != nil && fields == nil {
			return nil, err
		}
		if errs = append(errs, fields.Under(a.field+".value")...); err != nil {
			continue
		}
		for i := range changes {
			if p.Alters(&changes[i]) {
				made = append(made, changes[i])
			}
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
func (s *Server) performMany(c *call, ch *change, only bool) (err error) {
	ctx := c.Request().Context()
	var after *clientcfg.PolicySnapshot
	if only {
		after, err = s.o.Policies.Try(ctx, s.edit(ch))
	} else {
		after, err = s.o.Policies.Change(c.lasting(), s.edit(ch))
	}
	if errors.Is(err, errNothing) {
		after, ch.until, err = ch.before, time.Time{}, nil
	}
	if err != nil {
		return s.explained(c, ch, err)
	}
	return s.answerMany(c, ch, after, only)
}

func (s *Server) answerMany(c *call, ch *change, after *clientcfg.PolicySnapshot, only bool) error {
	out := adminapi.Changed{Version: after.Version(), Until: ch.until}
	changed, err := shown(ch.made, ch.before, after)
	if err != nil {
		return err
	}
	out.Changes = make([]adminapi.ChangedTarget, len(changed))
	for i, c := range changed {
		out.Changes[i] = adminapi.ChangedTarget{Change: c, Until: until(after, c.Target), WasUntil: until(ch.before, c.Target)}
	}
	if only {
		out.Version = ch.before.Version()
		effect := s.effect(c.Request().Context(), ch, after)
		out.Effect = &effect
		return c.answer(out)
	}
	return c.answerState(http.StatusOK, wholeSet{}.state(after), func() (any, error) { return out, nil })
}

// shown returns the changes in the form of the audit trail. It is never nil.
func shown(made []clientcfg.Change, before, after *clientcfg.PolicySnapshot) (out []clientcfg.Change, err error) {
	out = []clientcfg.Change{}
	for _, target := range clientcfg.Targets(made) {
		r, known := resourceOf(target)
		if !known {
			continue
		}
		c := clientcfg.Change{Target: target}
		if c.Before, err = encoded(r, before); err != nil {
			return nil, err
		}
		if c.After, err = encoded(r, after); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// undo gives the targets of an earlier change their previous values, unless one of them has another
// value by now. It is a normal change, which can be undone too.
func (s *Server) undo(c *call) error {
	version, err := strconv.ParseInt(c.Param("version"), 10, 64)
	if err != nil || version < 1 {
		return notFound("a change is named by its version, a number from 1 on")
	}
	ch := &change{resource: wholeSet{}, action: actionUndo, reason: fmt.Sprintf("change %d", version)}
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
		return nil, notFound("the trail has no change %d of limits", version)
	case events[0].Err != nil:
		return nil, conflict("change %d cannot be undone, because it cannot be read: %v", version, events[0].Err)
	}
	for i := range events[0].Changes {
		if !events[0].Changes[i].IsState() {
			return nil, conflict("a reset of counters cannot be undone: the counts of before are gone")
		}
	}
	return &events[0], nil
}

// changedSince returns the error for a change to be undone that is not the last one of a target.
func (s *Server) changedSince(ctx context.Context, target string, version int64) error {
	last, err := s.changesSince(ctx, target, unknownVersion)
	if err != nil {
		return err
	}
	changed := problem(http.StatusConflict, typeConflict, "Changed since", "change %d is not the last one of %s", version, target)
	if len(last) > 0 {
		e := &last[0]
		changed.Detail += fmt.Sprintf(": %s did %s it in change %d, at %s; undo that first, or set what you need",
			adminapi.Who(&e.Actor), e.Action, e.Version, e.At.UTC().Format(time.RFC3339))
	}
	return changed
}

// resourceOf returns the resource for an audit target. It returns false if the target cannot be
// changed this way. It does not check whether the client is registered.
func resourceOf(target string) (resource, bool) {
	if target == clientcfg.SettingsTarget {
		return settingsResource{}, true
	}
	kind, name, _ := strings.Cut(target, "/")
	if name == "" {
		return nil, false
	}
	switch kind + "/" {
	case clientcfg.PolicyTarget(""):
		return policyResource{name}, len(name) <= clientcfg.MaxIDLength
	case clientcfg.CandidateTarget(""):
		return candidateResource{name}, len(name) <= clientcfg.MaxIDLength
	case clientcfg.TierTarget(""):
		return tierResource{name}, clientcfg.ValidateTierName(name) == nil
	}
	id, username, is := clientcfg.OverrideOf(target)
	return overrideResource{id, username}, is && len(id) <= clientcfg.MaxIDLength
}

// resourceTyped is like resourceOf, with the username of an override in any spelling.
func resourceTyped(target string) (r resource, known bool, err error) {
	if r, known = resourceOf(target); known {
		if o, is := r.(overrideResource); is {
			r, err = override(o.clientID, o.username)
		}
	}
	return r, known, err
}

// clientOf returns the client of a resource, or "" if it applies to all.
func clientOf(r resource) string {
	switch r := r.(type) {
	case policyResource:
		return r.clientID
	case overrideResource:
		return r.clientID
	case candidateResource:
		if r.name != clientcfg.GlobalCandidate {
			return r.name
		}
	}
	return ""
}

// setTargets returns the first n targets after a target that operators have set, or that will
// return to an earlier value, in the order of a limits file. n = 0 returns all.
func setTargets(p *clientcfg.PolicySnapshot, after string, n int) (targets []string) {
	set := p.Set()
	if n == 0 {
		n = 1 + set.Clients.Len() + set.Candidates.Len() + set.Tiers.Len() + set.Overrides.Len() + set.Temporary.Len()
	}
	for _, section := range adminapi.Sections {
		targets = append(targets, lowest(n-len(targets), func(yield func(string) bool) {
			for target := range sectionTargets(p, section) {
				if adminapi.CompareTargets(target, after) > 0 && !yield(target) {
					return
				}
			}
		})...)
		if len(targets) == n {
			break
		}
	}
	return targets
}

// sectionTargets yields the targets of a section in any order, each once.
func sectionTargets(p *clientcfg.PolicySnapshot, section string) iter.Seq[string] {
	set := p.Set()
	names := map[string]iter.Seq[string]{
		"settings": func(func(string) bool) {},
		"tiers":    set.Tiers.Keys(),
		"policies": set.Clients.Keys(), "overrides": set.Overrides.Keys(),
		"candidates": set.Candidates.Keys(),
	}[section]
	return func(yield func(string) bool) {
		if section == clientcfg.SettingsTarget && !isUnset(settingsResource{}, p) && !yield(section) {
			return
		}
		for name := range names {
			if !yield(section + "/" + name) {
				return
			}
		}
		for of := range set.Temporary.Keys() { // of temporary removals
			kind, _, _ := strings.Cut(of, "/")
			if r, known := resourceOf(of); kind == section && known && isUnset(r, p) && !yield(of) {
				return
			}
		}
	}
}

// isUnset reports whether operators have not set the resource.
func isUnset(r resource, p *clientcfg.PolicySnapshot) bool {
	if _, is := r.(settingsResource); is {
		o := p.Set().Settings
		return len(o.Names()) == 0 && o.Note == ""
	}
	return !r.state(p).exists
}

// areRegistered returns, as field errors, which resources belong to clients that do not exist. It
// accepts a resource that is already set.
func (s *Server) areRegistered(ctx context.Context, resources map[string]resource) (errs fielderr.Errors, err error) {
	if s.o.ClientsElsewhere {
		return nil, nil
	}
	p, unknown := s.o.Policies.Snapshot(), map[string]string{}
	for field, r := range resources {
		if id := clientOf(r); id != "" && isUnset(r, p) && !s.o.Clients.Directory().Has(id) {
			unknown[field] = id
		}
	}
	if len(unknown) == 0 {
		return nil, nil
	}
	if err := s.o.Clients.Renew(ctx, 0); err != nil { // they may be new
		return nil, err
	}
	for _, field := range slices.Sorted(maps.Keys(unknown)) {
		if !s.o.Clients.Directory().Has(unknown[field]) {
			errs.Add(field, "there is no client %q", unknown[field])
		}
	}
	return errs, nil
}
