package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg"
)

// Actions in the audit trail.
const (
	actionUpdate  = "update"
	actionDelete  = "delete"
	actionPromote = "promote"
	actionReset   = "reset"
	actionUndo    = "undo"
)

// change is a requested change: the resource, the conditions and the actor.
type change struct {
	resource   resource // that the conditions refer to
	changes    resource // the changed resource; differs from resource only for promote
	action     string
	conditions conditions
	derive     deriver
	by         *caller
	reason     string
	lasts      time.Duration // how long a temporary change lasts; 0 for a permanent one

	until  time.Time                 // end of a temporary change; set together with before
	before *clientcfg.PolicySnapshot // set by each run of the edit; the last run counts
	made   []clientcfg.Change
}

// edit returns the edit for [clientcfg.PolicySource], which may run it several times.
func (s *Server) edit(ch *change) clientcfg.Edit {
	return func(p *clientcfg.PolicySnapshot) (e clientcfg.Event, err error) {
		ch.before = p
		now := s.o.Now().UTC().Truncate(time.Millisecond)
		if err := ch.allowed(p); err != nil {
			return e, err
		}
		if ch.made, err = ch.derive(p, now); err != nil {
			return e, err
		}
		if len(ch.made) == 0 {
			return e, errNothing
		}
		if ch.lasts > 0 {
			ch.until = s.o.Clock().UTC().Truncate(time.Millisecond).Add(ch.lasts)
			if ch.made, err = clientcfg.Temporarily(ch.made, ch.until); err != nil {
				return e, err
			}
		}
		e.At, e.Changes = now, ch.made
		p.Complete(&e)
		after, err := p.Apply(&e)
		if err == nil {
			err = after.CheckEnds(p).Err()
		}
		if err == nil {
			err = s.o.Clients.Directory().LockedOut(p, after)
		}
		if err != nil {
			return e, err
		}
		return e, s.describe(&e, ch, p, after)
	}
}

// allowed checks the conditions, and that a resource to be deleted or promoted exists.
func (ch *change) allowed(p *clientcfg.PolicySnapshot) error {
	st := ch.resource.state(p)
	err := ch.conditions.check(st)
	if err == nil && ch.action != actionUpdate && !st.exists && !p.IsLeftOut(ch.resource.target()) {
		if r, ok := ch.resource.(deletable); ok {
			return r.absent()
		}
		err = notFound("nothing was set here over this API; what holds comes from the configuration file or the settings")
	}
	return err
}

// concerned yields the clients that the change may affect and that can send requests: the
// registered ones or, if clients are registered elsewhere, all with any setting. Some are yielded
// twice.
func (s *Server) concerned(ch *change, after *clientcfg.PolicySnapshot) iter.Seq[string] {
	directory := s.o.Clients.Directory()
	ids, all := ch.before.Concerned(ch.made)
	return func(yield func(string) bool) {
		for _, id := range ids {
			if (s.o.ClientsElsewhere || directory.Has(id)) && !yield(id) {
				return
			}
		}
		if !all {
			return
		}
		for c := range directory.All() {
			if !yield(c.ID) {
				return
			}
		}
		for _, p := range []*clientcfg.PolicySnapshot{ch.before, after} {
			if !s.o.ClientsElsewhere {
				return
			}
			for id := range p.Unregistered(directory) {
				if !yield(id) {
					return
				}
			}
		}
	}
}

// effect returns the clients that the change would have hit. It covers all clients that this
// instance has recorded, and the clients in the reports of other instances. If the change enforces
// more only after temporary changes end, it evaluates that state.
func (s *Server) effect(ctx context.Context, ch *change, after *clientcfg.PolicySnapshot) adminapi.Effect {
	now := s.o.Now()
	all := s.reports(ctx)
	own := s.o.Activity.Report(now, math.MaxInt)
	own.Incomplete = own.Incomplete || all[0].Activity.Incomplete
	all[0].Activity = own
	recent := merged(all)
	e := effectOf(ch.before, after, s.concerned(ch, after), s.o.ClientsElsewhere, recent, now)
	if was, will := ch.before.Lasting(), after.Lasting(); !e.Widens && (was != ch.before || will != after) {
		later := effectOf(was, will, s.concerned(ch, after), s.o.ClientsElsewhere, recent, now)
		if later.Widens {
			later.Summary = "When what is temporary ends, this change denies more requests. " + later.Summary
			e = later
		}
	}
	e.Warnings = s.unseen(ch, recent)
	return e
}

// describe adds the fields for the audit trail to the event.
func (s *Server) describe(e *clientcfg.Event, ch *change, before, after *clientcfg.PolicySnapshot) error {
	e.Actor, e.Action, e.Reason, e.Instance, e.Until = ch.by.actor(), ch.action, ch.reason, s.o.Instance(), ch.until
	changed, err := shown(ch.made, before, after)
	if err != nil || len(changed) == 0 {
		return errors.Join(err, errors.New("admin: a change of no known target"))
	}
	e.Target, e.Before, e.After, e.More = changed[0].Target, changed[0].Before, changed[0].After, changed[1:]
	return nil
}

// encoded returns a resource in the form of the audit trail, or null if it does not exist.
func encoded(r resource, p *clientcfg.PolicySnapshot) (json.RawMessage, error) {
	st := r.state(p)
	if !st.exists {
		return json.RawMessage("null"), nil
	}
	b, err := json.Marshal(st.doc)
	if err != nil {
		return nil, fmt.Errorf("admin: encode audit entry: %w", err)
	}
	return b, nil
}

// get returns the resource and its ETag.
func (s *Server) get(c *call, r resource) error { return s.answerResource(c, r, s.policies(c)) }

func (s *Server) answerResource(c *call, r resource, p *clientcfg.PolicySnapshot) error {
	st := r.state(p)
	return c.answerState(http.StatusOK, st, func() (any, error) {
		if r, ok := r.(deletable); ok && !st.exists {
			return nil, r.absent()
		}
		return r.view(c.Request().Context(), s, p), nil
	})
}

func (s *Server) put(c *call, r resource) error {
	v, err := c.body("application/json")
	if err != nil {
		return err
	}
	return s.change(c, r, actionUpdate, func(p *clientcfg.PolicySnapshot, now time.Time) ([]clientcfg.Change, error) {
		return r.with(p, v, now)
	})
}

func (s *Server) patch(c *call, r resource) error {
	v, err := c.mergePatch()
	if err != nil {
		return err
	}
	return s.change(c, r, actionUpdate, func(p *clientcfg.PolicySnapshot, now time.Time) ([]clientcfg.Change, error) {
		whole, err := patched(r.base(p), v)
		if err != nil {
			return nil, err
		}
		return r.with(p, whole, now)
	})
}

func (s *Server) remove(c *call, r resource) error {
	return s.change(c, r, actionDelete, func(p *clientcfg.PolicySnapshot, now time.Time) ([]clientcfg.Change, error) {
		return r.with(p, nil, now)
	})
}

// deriver returns the changes to make.
type deriver func(p *clientcfg.PolicySnapshot, now time.Time) ([]clientcfg.Change, error)

// change changes the resource and returns its new state.
func (s *Server) change(c *call, r resource, action string, derive deriver) error {
	return s.perform(c, &change{resource: r, changes: r, action: action, derive: derive})
}

// asked reads the parameters of a change. only is true if the change is only to be rehearsed.
func (c *call) asked(ch *change) (only bool, err error) {
	if only, err = c.flag("validate"); err != nil {
		return false, err
	}
	reason, err := c.reason()
	if err != nil {
		return false, err
	}
	ch.by, ch.conditions, ch.reason = c.caller, conditionsOf(c.Request().Header), ch.reason+reason
	if !only && ch.action != actionUndo && !ch.conditions.given() {
		return false, errNoCondition
	}
	return only, nil
}

// perform makes the change and responds. With ?validate=true it only returns the effect of the
// change.
func (s *Server) perform(c *call, ch *change) (err error) {
	if c.query.Has("for") {
		if ch.lasts, err = readFor(c.query.Get("for")); err != nil {
			return invalidField("for", "%v", err)
		}
	}
	only, err := c.asked(ch)
	if err != nil {
		return err
	}
	if only {
		return s.rehearse(c, ch)
	}
	after, err := s.o.Policies.Change(c.lasting(), s.edit(ch))
	if err != nil {
		return s.explained(c, ch, err)
	}
	if ch.action == actionDelete {
		return c.done(nil)
	}
	return s.answerResource(c, ch.changes, after)
}

// rehearse returns the effect of a change, without making it.
func (s *Server) rehearse(c *call, ch *change) error {
	after, err := s.o.Policies.Try(c.Request().Context(), s.edit(ch))
	if err != nil {
		return s.explained(c, ch, err)
	}
	out := adminapi.Rehearsal{
		Valid: true, Until: ch.until, WasUntil: until(ch.before, ch.changes.target()), Effect: s.effect(c.Request().Context(), ch, after),
	}
	if out.Before, err = encoded(ch.changes, ch.before); err != nil {
		return err
	}
	if out.After, err = encoded(ch.changes, after); err != nil {
		return err
	}
	return c.answer(out)
}

// promote makes a candidate live: its limits become the client's limits, or the default limits. A
// trusted client is no longer trusted afterwards, because the candidate was tried as limits.
func (s *Server) promote(c *call, r resource) error {
	candidate := r.(candidateResource) //nolint:forcetypeassert // the route is that of candidates
	return s.perform(c, &change{
		resource: r, changes: candidate.live(), action: actionPromote,
		derive: func(p *clientcfg.PolicySnapshot, _ time.Time) ([]clientcfg.Change, error) {
			return promoted(p, candidate.name)
		},
	})
}

// live returns the resource that the candidate becomes.
func (r candidateResource) live() resource {
	if r.name == clientcfg.GlobalCandidate {
		return settingsResource{}
	}
	return policyResource{r.name}
}

// promoted returns the changes that make the candidate live and remove it as a candidate.
func promoted(p *clientcfg.PolicySnapshot, name string) ([]clientcfg.Change, error) {
	cand, _ := p.Set().Candidates.Get(name)
	var live clientcfg.Change
	var err error
	if name == clientcfg.GlobalCandidate {
		o := p.Set().Settings
		o.Policy = cand.Promoted(o.Policy)
		live, err = clientcfg.ChangeSettings(o)
	} else {
		own, _ := p.Policy(name)
		own.Policy = cand.Promoted(own.Policy)
		live, err = clientcfg.ChangePolicy(name, &own)
	}
	gone, goneErr := clientcfg.ChangeCandidate(name, nil)
	return []clientcfg.Change{live, gone}, errors.Join(err, goneErr)
}
